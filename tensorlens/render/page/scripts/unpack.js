// Unpacks the page's data: JSON, compressed with gzip, in base64.

async function unpack() {
  const packed = document.getElementById("data").textContent;
  const bytes = Uint8Array.from(atob(packed), (char) => char.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}
