const NAMESPACE = "http://www.w3.org/2000/svg";

// Texts become nodes, never markup: names of tensors come from elsewhere.
function element(parent, name, attributes, text) {
  const node = document.createElementNS(NAMESPACE, name);
  for (const key in attributes) node.setAttribute(key, attributes[key]);
  if (text !== undefined) node.textContent = text;
  parent.appendChild(node);
  return node;
}
function picture(id, width, height) {
  return element(document.getElementById(id), "svg", {viewBox: `0 0 ${width} ${height}`, role: "img"});
}
function hint(node, text) { element(node, "title", {}, text); }
function said(id, text) { document.getElementById(id).textContent = text; }
function short(text, most) { return text.length <= most ? text : "\u2026" + text.slice(text.length - most + 1); }

function scaled(value, units) {
  let unit = 0;
  while (unit + 1 < units.length && value >= 999.5) { value /= 1000; ++unit; }
  return value.toFixed(value >= 99.95 || value === 0 ? 0 : value >= 9.995 ? 1 : 2) + " " + units[unit];
}
const time = (ms) => scaled(ms * 1e6, ["ns", "us", "ms", "s"]);
const bytes = (count) => scaled(count, ["B", "kB", "MB", "GB", "TB"]);
const percent = (share) => (100 * share).toFixed(share > 0 && share < 0.0995 ? 1 : 0) + " %";

// Round numbers up to `most`, some four of them.
function ticks(most) {
  if (!(most > 0)) return [0];
  const raw = most / 4, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((f) => f * power).find((s) => s >= raw);
  const found = [];
  for (let at = 0; at <= most * 1.0001; at += step) found.push(at);
  return found;
}

// One line for each of `rows`: {name, parts: [[share of the width, colour]], value, hint}
function drawBars(id, rows, label, valueWidth) {
  const width = 560, each = 22;
  const svg = picture(id, width, Math.max(1, rows.length) * each + 4);
  rows.forEach((row, i) => {
    const y = i * each + 3, room = width - label - valueWidth;
    element(svg, "text", {x: label - 8, y: y + 13, "text-anchor": "end"}, short(row.name, Math.floor(label / 6.2)));
    let x = label;
    for (const [share, colour] of row.parts) {
      const rect = element(svg, "rect", {x, y, height: 16, width: Math.max(0, share * room), rx: 2, fill: colour});
      hint(rect, row.hint);
      x += share * room;
    }
    element(svg, "text", {class: "soft", x: x + 6, y: y + 13}, row.value);
  });
}
