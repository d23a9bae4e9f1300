// The page of `sphynx app`. Everything it fetches is below its own address, which holds the token.
"use strict";

const at = (id) => document.getElementById(id);
const LINKS = ["loopback", "lan", "wan"];
const LINK_NAMES = { loopback: "on this machine", lan: "over a LAN (0.5 ms, 1 Gbit/s)", wan: "over a WAN (40 ms, 100 Mbit/s)" };
let current = null; // the picture asked about: a Blob
let asking = false;
let camera = null; // a MediaStream
let model = 0; // which of the networks is asked
let news = null; // its EventSource

const relu = () => document.querySelector("input[name=relu]:checked").value;
const percent = (part) => (100 * part).toFixed(part < 0.1 ? 1 : 0) + " %";

function time(seconds) {
  if (seconds < 1) return (1000 * seconds).toFixed(seconds < 0.1 ? 1 : 0) + " ms";
  return seconds.toFixed(seconds < 10 ? 2 : 1) + " s";
}

function size(bytes) {
  for (const [unit, many] of [["GB", 1e9], ["MB", 1e6], ["kB", 1e3]]) {
    if (bytes >= many) return (bytes / many).toFixed(bytes < 10 * many ? 2 : 1) + " " + unit;
  }
  return bytes + " bytes";
}

function element(kind, text, name) {
  const made = document.createElement(kind);
  if (text) made.textContent = text;
  if (name) made.className = name;
  return made;
}

async function call(path, options) {
  const reply = await fetch(path, options);
  const said = await reply.json();
  if (!reply.ok) throw new Error(said.what + " " + said.remedy);
  return said;
}

function unpacked(text) {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}

function drawDots(canvas, bytes, width, height, channels, says) {
  canvas.width = width;
  canvas.height = height;
  const image = new ImageData(width, height);
  for (let dot = 0; dot < width * height; dot++) {
    if (dot * channels >= bytes.length) break;
    for (let colour = 0; colour < 3; colour++) image.data[4 * dot + colour] = bytes[dot * channels + (channels === 3 ? colour : 0)];
    image.data[4 * dot + 3] = 255;
  }
  canvas.getContext("2d").putImageData(image, 0, 0);
  canvas.setAttribute("aria-label", says);
}

function drawBytes(canvas, bytes, says) {
  const side = Math.ceil(Math.sqrt(bytes.length));
  drawDots(canvas, bytes, side, Math.ceil(bytes.length / side), 1, says);
}

function drawHistogram(canvas, counts, says) {
  const context = canvas.getContext("2d");
  const top = Math.max(...counts) || 1;
  context.clearRect(0, 0, canvas.width, canvas.height);
  context.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--accent");
  counts.forEach((count, value) => {
    const high = (canvas.height * count) / top;
    context.fillRect(2 * value, canvas.height - high, 2, high);
  });
  canvas.setAttribute("aria-label", says);
}

const spread = (counts) => `${counts.filter((count) => count > 0).length} of 256 byte values occur`;

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
}

function showPrivate(found) {
  const bytes = unpacked(found.received.bytes);
  at("received-title").textContent = "What the server received";
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
  } else {
    at("other").width = at("other").height = 32; // which empties it: another network's may be there
    at("other-histogram").width = 512;
    at("other-says").textContent = "Ask about two pictures to compare what the server received of each.";
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
  showCosts([["computed in", time(found.clear_seconds)]]);
  showLayers([]);
  at("status").textContent = `${found.labels[0]}, ${percent(found.probabilities[0])}. In the clear: whoever computes this sees the picture.`;
}

async function ask(picture) {
  if (asking || !picture) return;
  current = picture;
  asking = true;
  document.body.setAttribute("aria-busy", "true");
  at("again").disabled = true;
  at("trouble").hidden = true;
  at("status").textContent = "Asking…";
  try {
    const clear = at("clear").checked;
    const found = await call(`ask?model=${model}&relu=${relu()}${clear ? "&clear=1" : ""}`, { method: "POST", body: picture });
    showPicture(found.picture);
    showBars(found);
    (clear ? showClear : showPrivate)(found);
    document.body.dataset.answer = JSON.stringify({ labels: found.labels, integer_logits: found.integer_logits });
  } catch (error) {
    at("status").textContent = "There is no answer.";
    showTrouble(error.message);
  } finally {
    asking = false;
    document.body.removeAttribute("aria-busy");
    at("again").disabled = false;
  }
}

function askFirst(files, how) {
  if (files.length) ask(files[0]);
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
    const took = (await call(`estimates?model=${model}&relu=${relu()}`))[link];
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
    at("work-label").textContent = `Offline: preparing a bundle (${work.relu}), ${percent(work.part)}`;
    at("work-says").textContent = `${work.layer}: ${size(work.sent_bytes)} up, ${size(work.received_bytes)} down so far`;
    if (asking) tellStatus(`No bundle was ready: preparing one first, ${20 * Math.floor(5 * work.part)} %…`);
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
  news.addEventListener("work", (event) => showWork(JSON.parse(event.data)));
  news.addEventListener("trouble", (event) => {
    const trouble = JSON.parse(event.data);
    showTrouble(trouble.what ? `${trouble.what} ${trouble.remedy}` : "");
  });
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
  document.querySelector(`input[name=relu][value=${about.relu}]`).checked = true;
  at("samples").replaceChildren(
    ...about.samples.map((name) => {
      const row = element("li"), button = element("button"), image = element("img");
      const from = `samples/${name}?model=${model}`;
      image.src = from;
      image.alt = "";
      button.type = "button";
      button.append(image, element("span", name));
      button.addEventListener("click", async () => ask(await (await fetch(from)).blob()));
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

at("file").addEventListener("change", () => ask(at("file").files[0]));
at("again").addEventListener("click", () => ask(current));
at("link").addEventListener("input", showLink);
at("clear").addEventListener("change", () => ask(current));
at("relu").addEventListener("change", () => {
  call(`prefer?model=${model}&relu=${relu()}`, { method: "POST" }).catch((error) => showTrouble(error.message));
  if (at("link").hasAttribute("aria-valuetext")) showLink();
});
at("model").addEventListener("change", async () => {
  model = Number(at("model").value);
  at("clear").checked = false;
  try {
    await start();
    at("model").focus();
    ask(current); // the same picture, for comparison
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
  still.toBlob(ask, "image/png");
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
