"use strict";
// Hover text that can be styled; without scripts the browser shows each mark's own title instead.
const box = document.createElement("div");
box.id = "hover";
box.hidden = true;
document.body.append(box);
for (const mark of document.querySelectorAll(".tip")) mark.querySelector("title")?.remove();
function show(event) {
  const mark = event.target.closest?.(".tip");
  box.hidden = !mark;
  if (!mark) return;
  box.textContent = mark.dataset.tip;
  const left = Math.min(event.clientX + 14, innerWidth - box.offsetWidth - 8);
  const below = event.clientY + 18 + box.offsetHeight < innerHeight;
  box.style.left = `${Math.max(8, left)}px`;
  box.style.top = `${below ? event.clientY + 18 : event.clientY - box.offsetHeight - 12}px`;
}
addEventListener("pointermove", show);
addEventListener("pointerdown", show);
addEventListener("scroll", () => { box.hidden = true; }, { passive: true });
