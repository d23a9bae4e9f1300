// The online phase as a film: every message of the real run crosses between you and the server, with its bytes and time.
import { at, drawBytes, element, empty, size, time, unpacked } from "./drawing.js";

const FLIGHT_MS = 500; // at normal speed
let messages = [];
let showing = 0; // counts the films, so that an older one ends
let isPlaying = false;

const speed = () => 2 ** Number(at("speed").value);
const isCalm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
const words = (message) => `${message.title}: ${size(message.bytes)} ${message.up ? "to the server" : "to you"}, at ${time(message.at)}`;

export function clearFilm() {
  stop();
  messages = [];
  at("film").hidden = at("saw-part").hidden = true;
  at("saw").setAttribute("aria-expanded", "false");
  at("messages").replaceChildren();
  empty(at("saw-bytes"), "Nothing was sent yet");
  empty(at("flying"), "");
}

export function keepFilm(found) {
  messages = found.film;
  if (!messages.length) return;
  const last = messages[messages.length - 1].at;
  at("film").hidden = false;
  at("film-part").value = 0;
  at("film-says").textContent = `${messages.length} messages in ${time(last)}. Each is drawn by its own first bytes. Press play.`;
  at("messages").replaceChildren(...messages.map((message) => element("li", words(message))));
  const bytes = unpacked(found.server_saw);
  drawBytes(at("saw-bytes"), bytes, "All that the server received: noise");
  at("saw-says").textContent =
    `All that the server received while it answered: ${size(found.online_sent_bytes)}, one grey dot a byte` +
    (bytes.length < found.online_sent_bytes ? `; the first ${size(bytes.length)} are drawn.` : ".");
}

function stop() {
  showing += 1;
  isPlaying = false;
  at("play").textContent = "Play";
  at("flying").style.visibility = "hidden";
}

async function play() {
  const mine = ++showing;
  isPlaying = true;
  at("play").textContent = "Stop";
  for (const [number, message] of messages.entries()) {
    at("film-says").textContent = `${number + 1} of ${messages.length}. ${words(message)}`;
    at("film-part").value = (number + 1) / messages.length;
    drawBytes(at("flying"), unpacked(message.start), "");
    await cross(message.up, FLIGHT_MS / speed());
    if (mine !== showing) return;
  }
  document.body.dataset.filmed = String(messages.length);
  stop();
}

// Where motion is not wanted, the message stands still in the middle instead.
function cross(isUp, lasts) {
  const flying = at("flying"), way = at("lane").clientWidth - flying.clientWidth;
  flying.style.visibility = "visible";
  const places = isCalm() ? [way / 2, way / 2] : isUp ? [0, way] : [way, 0];
  return flying.animate(places.map((place) => ({ transform: `translateX(${place}px)` })), { duration: lasts, fill: "forwards" }).finished;
}

at("play").addEventListener("click", () => (isPlaying ? stop() : play()));
at("speed").addEventListener("input", () => at("speed").setAttribute("aria-valuetext", `${speed()} times`));
at("saw").addEventListener("click", () => {
  at("saw-part").hidden = !at("saw-part").hidden;
  at("saw").setAttribute("aria-expanded", String(!at("saw-part").hidden));
});
