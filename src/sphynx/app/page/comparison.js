// The same picture asked privately and computed in the clear, side by side.
import { at, element, percent, readable, time } from "./drawing.js";

export function clearComparison() {
  at("side").hidden = true;
  at("side-rows").replaceChildren();
  at("side-says").textContent = "";
}

function answerOf(found) {
  if (!found.labels) return "numbers";
  return readable(found.labels[0]) + (found.probabilities ? `, ${percent(found.probabilities[0])}` : "");
}

export function showComparison(found) {
  const { fp32, integers, equal } = found.clear, faster = fp32 ?? integers;
  const rows = [
    ["privately", answerOf(found), time(found.online_seconds), "only you"],
    ...(fp32 ? [["in the clear, fp32 by torch", answerOf(fp32), time(fp32.clear_seconds), "whoever computes"]] : []),
    ["in the clear, the same integers", answerOf(integers), `${time(integers.clear_seconds)} (exact, not fast)`, "whoever computes"],
  ];
  at("side-rows").replaceChildren(
    ...rows.map((cells) => {
      const row = element("tr");
      row.append(...cells.map((cell) => element("td", cell)));
      return row;
    }),
  );
  const more = (1000 * (found.online_seconds - faster.clear_seconds)).toFixed(1);
  at("side-says").textContent =
    (equal ? "The private answer equals that of the integers bit for bit. " : "The private answer differs from that of the integers: this should not happen. ") +
    (fp32 ? `Privacy took ${more} ms more, after ${time(found.offline_seconds)} of preparation before there was a picture.` : "The float network is not here, so its time is not shown.");
  at("side").hidden = false;
}
