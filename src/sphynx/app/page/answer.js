// What the page shows of one answer: a verdict, labels, other outputs, costs, layers, and what the server received.
import {
  at, drawBytes, drawDots, drawHistogram, drawMap, drawThumbnail, element, empty, percent, readable, size, spread, time, unpacked,
} from "./drawing.js";

const PRIVATE_CAPTION = "as the network reads it; it stays here";
const CLEAR_CAPTION = "as the network reads it; in the clear, whoever computes gets it";
const FIRST_OTHER = "Ask about two pictures to compare what the server received of each.";
const CANVASES = ["original", "picture", "received", "other"];
const MOST_NUMBERS = 12;
const MOST_MAPS = 8;

// What an answer says, in one of four states: sure, unsure, a label without its probability, no classes at all.
export function verdictOf(found, unsureBelow) {
  if (!found.labels) return { state: "numbers", words: "", more: "The answer is not one of several classes: it is below." };
  if (!found.labels.length) return { state: "unsure", words: "unsure", more: "The server tells labels alone, and of this picture that it is not sure." };
  const best = readable(found.labels[0]);
  if (!found.probabilities) return { state: "alone", words: best, more: "The network tells the label alone, so how sure it is, is not known." };
  const part = percent(found.probabilities[0]);
  if (found.probabilities[0] >= unsureBelow) return { state: "sure", words: `${best}, ${part}`, more: "" };
  return { state: "unsure", words: "unsure", more: `The likeliest is ${best} with ${part}; below ${percent(unsureBelow)} it is left to you.` };
}

function showVerdict(verdict) {
  at("verdict").textContent = verdict.words;
  at("answer").classList.toggle("unsure", verdict.state === "unsure");
}

function rowWithBar(left, right, part) {
  const row = element("li"), words = element("div", "", "words"), bar = element("div", "", "bar"), inside = element("i");
  words.append(element("span", left), element("span", right));
  inside.style.width = 100 * part + "%";
  bar.append(inside);
  row.append(words, bar);
  return row;
}

function showBars(found) {
  const parts = found.probabilities ?? [];
  at("bars").replaceChildren(...parts.map((part, rank) => rowWithBar(readable(found.labels[rank]), percent(part), part)));
}

function showCosts(pairs) {
  at("costs").replaceChildren(...pairs.flatMap(([name, value]) => [element("dt", name), element("dd", value)]));
}

function showLayers(layers) {
  const longest = Math.max(...layers.map((layer) => layer.seconds), 1e-9);
  const rows = layers.map((layer) => {
    const each = `${time(layer.seconds)}, ${size(layer.sent_bytes)} up, ${size(layer.received_bytes)} down`;
    return rowWithBar(layer.title, each, layer.seconds / longest);
  });
  at("layers").replaceChildren(...rows);
  at("layers-part").hidden = !layers.length;
}

// Outputs that are not scores of classes: maps as pictures, other numbers as a table.
function showOutputs(outputs) {
  at("outputs").replaceChildren(
    ...outputs.flatMap(({ name, dims, values }) => {
      const bytes = unpacked(values), numbers = new Float32Array(bytes.buffer);
      const heading = element("h3", `${readable(name)}: ${dims.join(" × ")} numbers`);
      return [heading, dims.length > 1 ? mapsOf(numbers, dims) : listOf(numbers)];
    }),
  );
}

function mapsOf(numbers, dims) {
  const [height, width] = dims.slice(-2), one = width * height, count = numbers.length / one;
  const maps = element("div", "", "maps");
  for (let number = 0; number < Math.min(count, MOST_MAPS); number++) {
    const part = Array.from(numbers.slice(number * one, (number + 1) * one)), canvas = element("canvas");
    const says = `Map ${number + 1} of ${count}: ${short(Math.min(...part))} (black) to ${short(Math.max(...part))} (white)`;
    canvas.setAttribute("role", "img");
    drawMap(canvas, part, width, height, says);
    const figure = element("figure");
    figure.append(canvas, element("small", says));
    maps.append(figure);
  }
  if (count > MOST_MAPS) maps.append(element("p", `and ${count - MOST_MAPS} more`));
  return maps;
}

function listOf(numbers) {
  const list = element("dl", "", "costs");
  numbers.slice(0, MOST_NUMBERS).forEach((number, place) => list.append(element("dt", String(place)), element("dd", short(number))));
  if (numbers.length > MOST_NUMBERS) list.append(element("dt", "…"), element("dd", `${numbers.length - MOST_NUMBERS} more`));
  return list;
}

const short = (number) => String(Number(number.toPrecision(4)));

export function showPicture(picture) {
  const [height, width, channels] = picture.shape;
  drawDots(at("picture"), unpacked(picture.bytes), width, height, channels, `Your picture, ${width} by ${height} pixels`);
  drawHistogram(at("picture-histogram"), picture.counts, `Histogram of your picture: ${spread(picture.counts)}`);
  at("picture-says").textContent = `${width} by ${height} pixels, ${at("picture-says").textContent}`;
  if (!at("asked").hidden) return;
  drawThumbnail(at("asked"), at("picture")); // of a format that the browser does not know
  at("original-says").textContent = "of a format that this browser does not show";
}

// Nothing of an earlier picture may stand beside a new question.
export function clearAnswer(isClear) {
  delete document.body.dataset.answer;
  showVerdict({ state: "", words: "" });
  at("bars").replaceChildren();
  at("outputs").replaceChildren();
  showCosts([]);
  showLayers([]);
  showTrouble("");
  at("asked").hidden = true;
  for (const id of ["asked", ...CANVASES]) empty(at(id), "No picture yet");
  for (const id of ["picture", "received", "other"]) empty(at(`${id}-histogram`), "No histogram yet");
  at("original-says").textContent = "as you chose it";
  at("picture-says").textContent = isClear ? CLEAR_CAPTION : PRIVATE_CAPTION;
  at("received-title").textContent = "What the server received";
  at("received-says").textContent = "the bytes of this question, one grey dot each";
  at("other-says").textContent = FIRST_OTHER;
}

function showFound(found, unsureBelow) {
  const verdict = verdictOf(found, unsureBelow);
  showVerdict(verdict);
  showBars(found);
  showOutputs(found.outputs);
  return verdict;
}

export function showPrivate(found, unsureBelow) {
  const verdict = showFound(found, unsureBelow);
  const bytes = unpacked(found.received.bytes);
  at("received-says").textContent = `the ${bytes.length.toLocaleString("en")} bytes of this question, one grey dot each`;
  drawBytes(at("received"), bytes, "What the server received: noise");
  drawHistogram(at("received-histogram"), found.received.counts, `Histogram of what the server received: ${spread(found.received.counts)}`);
  at("other-figure").hidden = false;
  if (found.other) {
    drawBytes(at("other"), unpacked(found.other.bytes), "What the server received of another picture: noise too");
    drawHistogram(at("other-histogram"), found.other.counts, `Histogram for another picture: ${spread(found.other.counts)}`);
    at("other-says").textContent =
      `Two uniformly random messages differ at least this much in ${percent(found.other.probability)} of all cases (chi-square). ` +
      "Every mask is uniformly random, so the bytes say nothing about the picture.";
  }
  showCosts([
    ["the answer took", time(found.online_seconds)],
    [found.prepared_now ? "prepared just now" : "prepared before", `${time(found.offline_seconds)}, ${size(found.offline_bytes)}`],
    ["sent", size(found.online_sent_bytes)],
    ["received", size(found.online_received_bytes)],
    ["round trips", String(found.online_rounds)],
  ]);
  showLayers(found.layers);
  at("status").textContent = `${verdict.more} The server answered in ${time(found.online_seconds)} and never saw the picture.`.trim();
  return verdict;
}

export function showClear(found, unsureBelow) {
  const verdict = showFound(found, unsureBelow);
  const [height, width, channels] = found.picture.shape;
  at("received-title").textContent = "What the server would receive";
  at("received-says").textContent = "in the clear: the picture itself";
  drawDots(at("received"), unpacked(found.picture.bytes), width, height, channels, "In the clear the server sees your picture");
  drawHistogram(at("received-histogram"), found.picture.counts, "Histogram of your picture, which the server would see");
  at("other-figure").hidden = true;
  const isFloat = found.by === "fp32";
  showCosts([[isFloat ? "one pass in fp32, by torch" : "in integers", time(found.clear_seconds)]]);
  showLayers([]);
  at("status").textContent =
    `${verdict.more} In the clear: whoever computes this sees the picture. `.trimStart() +
    (isFloat ? "" : "The float network is not here: these are the server's integers, evaluated exactly, which is slow.");
  return verdict;
}

export function showTrouble(text) {
  at("trouble").textContent = text;
  at("trouble").hidden = !text;
}
