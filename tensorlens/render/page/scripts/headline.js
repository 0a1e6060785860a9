// Draws the headline: what ran, and the sentence that says how it ended.

// Draws the docstring of a lesson; folded if a finding is to be seen first.
function drawLesson(head, isOpen) {
  if (!head.paragraphs.length) return null;
  const paragraphs = head.paragraphs.map((text) => el("p", { class: "lesson" }, ...prose(text)));
  return el("details", { open: isOpen }, el("summary", { class: "quiet" }, "about this lesson"), ...paragraphs);
}

function drawHeadline(model) {
  const { head } = model;
  const [script, ...parts] = head.run;
  return el(
    "header",
    { class: "headline" },
    el("p", { class: "run" }, el("b", {}, script), ...parts.map((part) => el("span", {}, part))),
    head.title ? el("h1", {}, ...prose(head.title)) : null,
    drawLesson(head, model.findings.length === 0),
    el(head.title || model.findings.length ? "p" : "h1", { class: `sentence ${head.tone}` }, ...prose(head.sentence)),
    head.ended ? el("p", { class: "quiet" }, ...prose(head.ended)) : null,
    ...head.remarks.map((text) => el("p", { class: "quiet" }, ...prose(text))),
  );
}
