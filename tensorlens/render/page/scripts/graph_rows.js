// Makes the rows of the graph: what was recorded in one turn of a loop, folded by modules where it is much.

const FEW_ROWS = 24; // more rows than this are folded
const TURNS_BESIDE = 2; // folded turns that are shown before and after the one of the moment

// Returns the items of the graph by turns, in order. An item is a moment with a node, a cut, or a backward pass. After
// a pass, the first node on a line that the turn has already run begins the next turn.
function graphTurns(model) {
  const passes = model.moments.kind.flatMap((kind, moment) => (model.kinds[kind] === "backward" ? [moment] : []));
  const moments = [...new Set([...model.nodeAt.keys(), ...model.cutAt.keys(), ...passes])].sort((one, other) => one - other);
  const turns = [];
  let runs = new Map();
  let hasPass = true;
  for (const moment of moments) {
    const key = model.lineKey(model.placeAt(moment));
    const run = model.runAt(moment);
    const isAgain = runs.has(key) && runs.get(key) !== run;
    if (!turns.length || (hasPass && isAgain && model.nodeAt.has(moment))) {
      turns.push([]);
      runs = new Map();
      hasPass = false;
    }
    turns[turns.length - 1].push(moment);
    if (!runs.has(key)) runs.set(key, run);
    hasPass = hasPass || model.kind(moment) === "backward";
  }
  return turns;
}

// Returns groups of the items of one turn: single items, or where there are many, those of a module or of a few lines.
function graphGroups(model, items, depth = 1) {
  if (items.length <= FEW_ROWS) return items.map((item) => [item]);
  const groups = [];
  let last = null;
  for (const item of items) {
    const path = modulePath(model, item).slice(0, depth).join("");
    if (groups.length && (path === "" || path === last)) groups[groups.length - 1].push(item);
    else groups.push([item]);
    if (path !== "") last = path;
  }
  if (groups.length === 1) return depth < 8 ? graphGroups(model, items, depth + 1) : blocks(items);
  return groups.length > FEW_ROWS ? blocks(groups).map((each) => each.flat()) : groups;
}

function blocks(items) {
  const size = Math.ceil(items.length / FEW_ROWS);
  return Array.from({ length: Math.ceil(items.length / size) }, (_, place) => items.slice(place * size, (place + 1) * size));
}

function modulePath(model, moment) {
  const node = model.nodeAt.get(moment);
  return (node === undefined ? "" : model.text(model.graph.nodes.module[node])).match(/\.?[^.[\]]+|\[[^\]]*\]/g) || [];
}

// Follows the graph from a tensor through one turn: the moments that it reaches, and where the ways end.
function reachedIn(model, tensor, items) {
  const { edges, cuts, nodes } = model.graph;
  const found = { moments: new Set(), cuts: [], passes: [], first: NONE };
  const tensors = new Set([tensor]);
  for (const moment of items) {
    const node = model.nodeAt.get(moment);
    const cut = model.cutAt.get(moment);
    const isUse = (edge) => (edges.source[edge] < 0 ? edges.tensor[edge] === tensor : found.moments.has(edges.source[edge]));
    const uses = (model.edgesTo.get(moment) || []).filter(isUse);
    if (node !== undefined && (uses.length || nodes.tensor[node] === tensor)) {
      found.moments.add(moment);
      tensors.add(nodes.tensor[node]);
    } else if (cut !== undefined && tensors.has(cuts.tensor[cut])) {
      found.moments.add(moment);
      found.cuts.push(moment);
    } else if (model.kind(moment) === "backward" && passRoots(model, moment).some((root) => tensors.has(root) && (root !== tensor || found.moments.size))) {
      found.moments.add(moment);
      found.passes.push(moment);
    }
    if (found.first < 0 && found.moments.has(moment)) found.first = moment;
  }
  return found;
}

function passRoots(model, moment) {
  return (model.usesAt.get(moment) || []).map((use) => model.uses.tensor[use]);
}
