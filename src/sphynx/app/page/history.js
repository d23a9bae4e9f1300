// The session's answers, the latest first, each with its picture: in this page alone.
import { at, drawThumbnail, element, readable, time } from "./drawing.js";

const MOST = 24;

// `thumbnail` is the canvas of the picture that `found` is about.
export function remember(thumbnail, found, verdict, isClear) {
  const row = element("li"), picture = element("canvas"), words = element("div");
  [picture.width, picture.height] = [96, 96];
  picture.setAttribute("role", "img");
  drawThumbnail(picture, thumbnail);
  const unsure = found.labels && verdict.state === "unsure" ? ` (${readable(found.labels[0])}?)` : "";
  const how = isClear ? `in the clear, ${time(found.clear_seconds)}` : `private, ${time(found.online_seconds)}`;
  words.append(element("div", (verdict.words || "numbers") + unsure), element("small", how));
  row.append(picture, words);
  at("history").prepend(row);
  while (at("history").children.length > MOST) at("history").lastChild.remove();
  at("history-part").hidden = false;
}
