// The page of `sphynx app`. Everything it fetches is below its own address, which holds the token.
import { clearAnswer, showClear, showPicture, showPrivate, showTrouble } from "./answer.js";
import { clearComparison, showComparison } from "./comparison.js";
import { at, drawOriginal, drawThumbnail, element, percent, readable, size, time } from "./drawing.js";
import { clearFilm, keepFilm } from "./film.js";
import { remember } from "./history.js";

const LINKS = ["loopback", "lan", "wan"];
const LINK_NAMES = { loopback: "on this machine", lan: "over a LAN (0.5 ms, 1 Gbit/s)", wan: "over a WAN (40 ms, 100 Mbit/s)" };
const STOPPED = "The program has stopped. Start it again (sphynx app), and open the address that it prints.";
const TOO_MANY = "Too many pages are open, so that this one does not hear of bundles. Close others.";
let current = null; // the picture asked about: a Blob
let waiting = null; // for the latest question's answer: an AbortController
let camera = null; // a MediaStream
let model = 0; // which of the networks is asked
let news = null; // its EventSource
let unsureBelow = 0.5;
let told = ""; // the latest trouble that it told

const backend = () => document.querySelector("input[name=backend]:checked").value;

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

// On a phone the answer is below what was tapped.
function bringAnswerIntoView() {
  const isCalm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const { top, bottom } = at("status").getBoundingClientRect();
  if (top < 0 || bottom > innerHeight) at("answer").scrollIntoView({ block: "start", behavior: isCalm ? "auto" : "smooth" });
}

// `obtain` is given a signal and returns the picture, or promises it. The latest question wins: an earlier one's answer
// is not waited for, and the program does not ask it if it has not begun.
async function ask(obtain, extra = "") {
  waiting?.abort();
  const mine = (waiting = new AbortController());
  document.body.setAttribute("aria-busy", "true");
  const isClear = at("clear").checked;
  clearAnswer(isClear);
  clearMore();
  at("status").textContent = "Asking…";
  bringAnswerIntoView();
  try {
    const picture = await obtain(mine.signal);
    if (waiting !== mine) return;
    current = picture;
    at("again").disabled = false;
    createImageBitmap(picture).then((image) => {
      if (waiting !== mine) return;
      drawThumbnail(at("asked"), image);
      drawOriginal(at("original"), image);
    }, () => {});
    const path = `ask?model=${model}&backend=${backend()}${isClear ? "&clear=1" : extra}`;
    const found = await call(path, { method: "POST", body: picture, signal: mine.signal });
    if (waiting !== mine) return;
    showPicture(found.picture);
    const verdict = (isClear ? showClear : showPrivate)(found, unsureBelow);
    if (!isClear) offerMore(found);
    remember(at("asked"), found, verdict, isClear);
    document.body.dataset.answer = JSON.stringify({ labels: found.labels, integer_logits: found.integer_logits });
  } catch (error) {
    if (waiting !== mine) return;
    at("status").textContent = "There is no answer.";
    showTrouble(error.message);
  } finally {
    if (waiting === mine) document.body.removeAttribute("aria-busy");
  }
}

function clearMore() {
  clearComparison();
  clearFilm();
  at("after").hidden = true;
}

// What can be had of a private answer: a comparison, a film, a record.
function offerMore(found) {
  keepFilm(found);
  if (found.clear) showComparison(found);
  const record = `record?model=${model}&answer=${found.number}`;
  at("record").href = record;
  at("keep").href = record;
  at("after").hidden = false;
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
    at("work-says").textContent = `${work.title}: ${size(work.sent_bytes)} up, ${size(work.received_bytes)} down so far`;
    if (document.body.hasAttribute("aria-busy")) tellStatus(`Nothing was prepared yet. Preparing first: ${20 * Math.floor(5 * work.part)} %…`);
  } else if (work.doing === "asking") {
    at("work-label").textContent = `Online: layer ${work.layers_done} of ${work.layers}`;
    at("work-says").textContent = `${work.title}: ${size(work.sent_bytes)} up, ${size(work.received_bytes)} down so far`;
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
    const prepared = ready[kept];
    at("ready").textContent = prepared ? `Prepared for ${prepared} ${prepared === 1 ? "answer" : "answers"}.` : "Preparing; the first answer takes longer.";
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
    at("ready").textContent = "";
    showWork({ doing: "nothing" });
  }
}

async function start() {
  const about = await call(`about?model=${model}`);
  const [channels, height, width] = about.image;
  unsureBelow = about.unsure_below;
  at("about").textContent =
    `${about.name}: ${about.relus.toLocaleString("en")} ReLUs, reads ${width} by ${height} ` +
    `${channels === 1 ? "grey" : "colour"} pixels. The server is ${about.server}.`;
  showKnowledge(about.class_names.map(readable));
  at("warning").hidden = !about.warning;
  at("warning").textContent = `Warning: ${about.warning}.`;
  at("clear-row").hidden = at("compare").hidden = !about.has_weights;
  at("model-row").hidden = about.models.length < 2;
  at("model").replaceChildren(...about.models.map((name, number) => new Option(name, number, false, number === model)));
  document.querySelector(`input[name=backend][value=${about.backend}]`).checked = true;
  at("samples").replaceChildren(
    ...about.samples.map(({ name, licence }) => {
      const row = element("li"), button = element("button"), image = element("img");
      const from = `samples/${name}?model=${model}`;
      image.src = from;
      image.alt = "";
      button.type = "button";
      button.title = licence;
      button.append(image, element("span", readable(name)));
      button.addEventListener("click", () => ask((signal) => sample(from, signal)));
      row.append(button);
      return row;
    }),
  );
  at("licences").textContent = licencesOf(about.samples);
  listen();
}

// "orange, clock: drawn for Sphynx. china: by somebody": each licence once.
function licencesOf(samples) {
  const licences = [...new Set(samples.map(({ licence }) => licence))];
  return licences
    .map((licence) => `${samples.filter((one) => one.licence === licence).map((one) => readable(one.name)).join(", ")}: ${licence}.`)
    .join(" ");
}

function showKnowledge(names) {
  const [few, more] = [names.slice(0, 6).join(", "), names.length - 6];
  at("knows").textContent = names.length
    ? `The network tells ${names.length} things apart: ${few}${more > 0 ? ` and ${more} more` : ""}. Of anything else it names the likeliest of these.`
    : "The network answers with numbers, not with one of several classes.";
  at("classes-part").hidden = more <= 0;
  at("classes").textContent = names.join(", ");
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
at("compare").addEventListener("click", () => current && ask(() => current, "&compare=1"));
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
  clearAnswer(false);
  clearMore();
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
