// The page of `sphynx app`. Everything it fetches is below its own address, which holds the token.
import { drawBytes, drawDots, drawHistogram, drawThumbnail, empty, percent, size, spread, time, unpacked } from "./drawing.js";

const at = (id) => document.getElementById(id);
const LINKS = ["loopback", "lan", "wan"];
const LINK_NAMES = { loopback: "on this machine", lan: "over a LAN (0.5 ms, 1 Gbit/s)", wan: "over a WAN (40 ms, 100 Mbit/s)" };
const STOPPED = "The program has stopped. Start it again (sphynx app), and open the address that it prints.";
const TOO_MANY = "Too many pages are open, so that this one does not hear of bundles. Close others.";
const PRIVATE_CAPTION = "as the network reads it; it stays here";
const CLEAR_CAPTION = "as the network reads it; in the clear, whoever computes gets it";
const FIRST_OTHER = "Ask about two pictures to compare what the server received of each.";
let current = null; // the picture asked about: a Blob
let waiting = null; // for the latest question's answer: an AbortController
let camera = null; // a MediaStream
let model = 0; // which of the networks is asked
let news = null; // its EventSource
let told = ""; // the latest trouble that it told

const backend = () => document.querySelector("input[name=backend]:checked").value;
function element(kind, text, name) {
  const made = document.createElement(kind);
  if (text) made.textContent = text;
  if (name) made.className = name;
  return made;
}

async function reach(path, options) {
  try {
    return await fetch(path, options);
  } catch (error) {
    throw error.name === "AbortError" ? error : new Error(STOPPED);
  }
}

async function call(path, options) {
  const reply = await reach(path, options);
  const said = await reply.json();
  if (!reply.ok) throw new Error(said.what + " " + said.remedy);
  return said;
}

function showBars(found) {
  const rows = found.labels.map((label, rank) => {
    const row = element("li"), words = element("div", "", "words"), bar = element("div", "", "bar"), inside = element("i");
    words.append(element("span", label), element("span", percent(found.probabilities[rank])));
    inside.style.width = 100 * found.probabilities[rank] + "%";
    bar.append(inside);
    row.append(words, bar);
    return row;
  });
  at("bars").replaceChildren(...rows);
}

function showCosts(pairs) {
  at("costs").replaceChildren(...pairs.flatMap(([name, value]) => [element("dt", name), element("dd", value)]));
}

function showLayers(layers) {
  const longest = Math.max(...layers.map((layer) => layer.seconds), 1e-9);
  const rows = layers.map((layer) => {
    const row = element("li"), words = element("div", "", "words"), bar = element("div", "", "bar"), inside = element("i");
    const each = `${time(layer.seconds)}, ${size(layer.sent_bytes)} up, ${size(layer.received_bytes)} down`;
    words.append(element("span", layer.layer), element("span", each));
    inside.style.width = (100 * layer.seconds) / longest + "%";
    bar.append(inside);
    row.append(words, bar);
    return row;
  });
  at("layers").replaceChildren(...rows);
  at("layers-part").hidden = !layers.length;
}

function showPicture(picture) {
  const [height, width, channels] = picture.shape;
  drawDots(at("picture"), unpacked(picture.bytes), width, height, channels, `Your picture, ${width} by ${height} pixels`);
  drawHistogram(at("picture-histogram"), picture.counts, `Histogram of your picture: ${spread(picture.counts)}`);
  if (at("asked").hidden) drawThumbnail(at("asked"), at("picture")); // of a format that the browser does not know
}

// Nothing of an earlier picture may stand beside a new question.
function clearAnswer() {
  delete document.body.dataset.answer;
  at("bars").replaceChildren();
  showCosts([]);
  showLayers([]);
  showTrouble("");
  at("asked").hidden = true;
  for (const id of ["asked", "picture", "received", "other"]) empty(at(id), "No picture yet");
  for (const id of ["picture", "received", "other"]) empty(at(`${id}-histogram`), "No histogram yet");
  at("picture-says").textContent = at("clear").checked ? CLEAR_CAPTION : PRIVATE_CAPTION;
  at("received-title").textContent = "What the server received";
  at("received-says").textContent = "the bytes of this question, one grey dot each";
  at("other-says").textContent = FIRST_OTHER;
}

function showPrivate(found) {
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
    [found.prepared_now ? "offline, just now" : "offline, before", `${time(found.offline_seconds)}, ${size(found.offline_bytes)}`],
    ["online", time(found.online_seconds)],
    ["sent", size(found.online_sent_bytes)],
    ["received", size(found.online_received_bytes)],
    ["round trips", String(found.online_rounds)],
  ]);
  showLayers(found.layers);
  at("status").textContent = `${found.labels[0]}, ${percent(found.probabilities[0])}. The server answered in ${time(found.online_seconds)} and never saw the picture.`;
}

function showClear(found) {
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
    `${found.labels[0]}, ${percent(found.probabilities[0])}. In the clear: whoever computes this sees the picture. ` +
    (isFloat ? "" : "The float network is not here: these are the server's integers, evaluated exactly, which is slow.");
}

// `obtain` is given a signal and returns the picture, or promises it. The latest question wins: an earlier one's answer
// is not waited for, and the program does not ask it if it has not begun.
async function ask(obtain) {
  waiting?.abort();
  const mine = (waiting = new AbortController());
  document.body.setAttribute("aria-busy", "true");
  clearAnswer();
  at("status").textContent = "Asking…";
  try {
    const picture = await obtain(mine.signal);
    if (waiting !== mine) return;
    current = picture;
    at("again").disabled = false;
    createImageBitmap(picture).then((image) => waiting === mine && drawThumbnail(at("asked"), image), () => {});
    const clear = at("clear").checked;
    const path = `ask?model=${model}&backend=${backend()}${clear ? "&clear=1" : ""}`;
    const found = await call(path, { method: "POST", body: picture, signal: mine.signal });
    if (waiting !== mine) return;
    showPicture(found.picture);
    showBars(found);
    (clear ? showClear : showPrivate)(found);
    document.body.dataset.answer = JSON.stringify({ labels: found.labels, integer_logits: found.integer_logits });
  } catch (error) {
    if (waiting !== mine) return;
    at("status").textContent = "There is no answer.";
    showTrouble(error.message);
  } finally {
    if (waiting === mine) document.body.removeAttribute("aria-busy");
  }
}

function askAgain() {
  if (current) ask(() => current);
}

async function sample(from, signal) {
  const reply = await reach(from, { signal });
  if (!reply.ok) throw new Error(STOPPED); // another program has the port now
  return reply.blob();
}

function askFirst(files, how) {
  if (files.length) ask(() => files[0]);
  else showTrouble(`What was ${how} holds no picture file. Copy the picture itself, or save it and choose the file.`);
}

function showTrouble(text) {
  at("trouble").textContent = text;
  at("trouble").hidden = !text;
}

async function showLink() {
  const link = LINKS[at("link").value];
  at("link").setAttribute("aria-valuetext", LINK_NAMES[link]);
  at("link-says").textContent = "Estimating; the first time this machine is measured, which takes some seconds…";
  try {
    const took = (await call(`estimates?model=${model}&backend=${backend()}`))[link];
    at("link-says").textContent =
      `Estimate ${LINK_NAMES[link]}: ${time(took.online_seconds)} online, ${time(took.offline_seconds)} offline before.`;
  } catch (error) {
    at("link-says").textContent = error.message;
  }
}

// A screen reader says each change: few of them.
function tellStatus(text) {
  if (at("status").textContent !== text) at("status").textContent = text;
}

function showWork(work) {
  const bar = at("work");
  bar.value = work.doing === "nothing" ? 0 : work.part;
  if (work.doing === "preparing") {
    at("work-label").textContent = `Offline: preparing a bundle (${work.backend}), ${percent(work.part)}`;
    at("work-says").textContent = `${work.layer}: ${size(work.sent_bytes)} up, ${size(work.received_bytes)} down so far`;
    if (document.body.hasAttribute("aria-busy")) tellStatus(`No bundle was ready: preparing one first, ${20 * Math.floor(5 * work.part)} %…`);
  } else if (work.doing === "asking") {
    at("work-label").textContent = `Online: layer ${work.layers_done} of ${work.layers}`;
    at("work-says").textContent = `${work.layer}: ${size(work.sent_bytes)} up, ${size(work.received_bytes)} down so far`;
  } else {
    at("work-label").textContent = "Nothing is being prepared.";
    at("work-says").textContent = "A bundle is what both sides compute before there is a picture. Each serves once.";
  }
}

function listen() {
  news?.close();
  news = new EventSource(`events?model=${model}`);
  news.addEventListener("bundles", (event) => {
    const { ready, kept } = JSON.parse(event.data);
    at("bundles").textContent = `Bundles ready: ${ready.gmw} for GMW, ${ready.gc} for garbled circuits`;
    document.body.dataset.ready = String(ready[kept]);
  });
  news.addEventListener("open", () => [STOPPED, TOO_MANY].includes(at("trouble").textContent) && showTrouble(""));
  news.addEventListener("error", tellWhyNoNews);
  news.addEventListener("work", (event) => showWork(JSON.parse(event.data)));
  news.addEventListener("trouble", (event) => {
    const { what, remedy } = JSON.parse(event.data), text = what ? `${what} ${remedy}` : "";
    if (text || at("trouble").textContent === told) showTrouble(text); // a question's own trouble stays
    told = text;
  });
}

// The browser tries again by itself, unless the program has refused.
async function tellWhyNoNews() {
  const isRefused = news.readyState === EventSource.CLOSED;
  try {
    await call(`about?model=${model}`);
    if (!isRefused) return;
    showTrouble(TOO_MANY);
    setTimeout(listen, 5000);
  } catch (error) {
    showTrouble(error.message);
    at("bundles").textContent = "Bundles ready: –";
    showWork({ doing: "nothing" });
  }
}

async function start() {
  const about = await call(`about?model=${model}`);
  const [channels, height, width] = about.image;
  at("about").textContent =
    `${about.name}: ${about.classes} classes, ${about.relus.toLocaleString("en")} ReLUs, reads ${width} by ${height} ` +
    `${channels === 1 ? "grey" : "colour"} pixels. The server is ${about.server}.`;
  at("clear-row").hidden = !about.has_weights;
  at("model-row").hidden = about.models.length < 2;
  at("model").replaceChildren(...about.models.map((name, number) => new Option(name, number, false, number === model)));
  document.querySelector(`input[name=backend][value=${about.backend}]`).checked = true;
  at("samples").replaceChildren(
    ...about.samples.map((name) => {
      const row = element("li"), button = element("button"), image = element("img");
      const from = `samples/${name}?model=${model}`;
      image.src = from;
      image.alt = "";
      button.type = "button";
      button.append(image, element("span", name));
      button.addEventListener("click", () => ask((signal) => sample(from, signal)));
      row.append(button);
      return row;
    }),
  );
  listen();
}

function stopCamera() {
  camera?.getTracks().forEach((track) => track.stop());
  camera = null;
  at("shoot").disabled = true;
  at("camera-view").hidden = true;
  at("camera").focus();
}

at("file").addEventListener("change", () => {
  const [picture] = at("file").files;
  at("file").value = ""; // so that the same file can be chosen again
  if (picture) ask(() => picture);
});
at("again").addEventListener("click", askAgain);
at("link").addEventListener("input", showLink);
at("clear").addEventListener("change", askAgain);
at("backend").addEventListener("change", () => {
  call(`prefer?model=${model}&backend=${backend()}`, { method: "POST" }).catch((error) => showTrouble(error.message));
  if (at("link").hasAttribute("aria-valuetext")) showLink();
});
at("model").addEventListener("change", async () => {
  model = Number(at("model").value);
  at("clear").checked = false;
  waiting?.abort();
  waiting = null; // the other network's answer
  document.body.removeAttribute("aria-busy");
  clearAnswer();
  at("status").textContent = "Choose a picture.";
  try {
    await start();
    at("model").focus();
    askAgain(); // the same picture, for comparison
  } catch (error) {
    showTrouble(error.message);
  }
});
at("camera").addEventListener("click", async () => {
  if (camera) return;
  showTrouble("");
  try {
    camera = await navigator.mediaDevices.getUserMedia({ video: true });
    at("video").srcObject = camera;
    at("camera-view").hidden = false;
    at("camera-off").focus();
  } catch (error) {
    showTrouble(`The camera cannot be used (${error.name}).`);
  }
});
at("camera-off").addEventListener("click", stopCamera);
at("video").addEventListener("loadeddata", () => {
  const allow = () => {
    if (!camera) return; // closed meanwhile
    at("shoot").disabled = false;
    at("shoot").focus();
  };
  const video = at("video"); // the first frame is loaded now, but black until it is shown
  if (video.requestVideoFrameCallback) video.requestVideoFrameCallback(allow);
  else allow();
});
at("shoot").addEventListener("click", () => {
  const still = document.createElement("canvas"), video = at("video");
  [still.width, still.height] = [video.videoWidth, video.videoHeight];
  still.getContext("2d").drawImage(video, 0, 0);
  ask(() => new Promise((take) => still.toBlob(take, "image/png")));
  stopCamera();
});
for (const kind of ["dragover", "dragleave", "drop"]) {
  document.addEventListener(kind, (event) => {
    event.preventDefault();
    at("drop").classList.toggle("over", kind === "dragover");
    if (kind === "drop") askFirst(event.dataTransfer.files, "dropped");
  });
}
document.addEventListener("paste", (event) => askFirst(event.clipboardData.files, "pasted"));
start().catch((error) => showTrouble(error.message));
