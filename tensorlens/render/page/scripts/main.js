// Starts the page: unpacks the data, draws everything once, and then what changes with the moment and the selection.

async function start() {
  const data = await unpack();
  const page = document.getElementById("page");
  if (data.format === "tensorlens.comparison-page") page.append(drawComparison(data));
  else if (data.format === "tensorlens.ranks-page") drawRanks(page, data);
  else drawReport(page, data);
  document.documentElement.classList.add("drawn");
}

function drawReport(page, data) {
  const model = new Model(data);
  const cursor = new Cursor(model);
  const source = new SourcePane(model, cursor);
  const panes = { source, lanes: new LanesPane(model, cursor), graph: new GraphPane(model, cursor), time: new TimeBar(model, cursor) };
  const pictures = el("div", { class: "pictures" }, panes.lanes.element, panes.graph.element);
  panes.saved = new SavedEdges(model, cursor, pictures);
  page.append(
    ...[
      drawHeadline(model),
      drawFindings(model, cursor),
      el("div", { class: "panes" }, source.element, pictures),
      drawTables(model, cursor),
      panes.time.element,
    ].filter(Boolean),
  );
  document.documentElement.classList.add("drawn");
  cursor.notify();
  if (window.location.hash.includes("selftest")) selftest(model, cursor, panes);
  return { model, cursor, panes };
}

window.pageErrors = [];
window.addEventListener("error", (event) => window.pageErrors.push(event.message));
start().catch((error) => {
  // The report as text stays visible.
  window.pageErrors.push(String(error));
  document.body.prepend(el("p", { class: "quiet" }, "this browser can't draw the page; below is the report as text"));
});
