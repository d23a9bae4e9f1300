// Numbers as words, and bytes and pictures on canvases.
export const percent = (part) => (100 * part).toFixed(part < 0.1 ? 1 : 0) + " %";

export function time(seconds) {
  if (seconds < 1) return (1000 * seconds).toFixed(seconds < 0.1 ? 1 : 0) + " ms";
  return seconds.toFixed(seconds < 10 ? 2 : 1) + " s";
}

export function size(bytes) {
  for (const [unit, many] of [["GB", 1e9], ["MB", 1e6], ["kB", 1e3]]) {
    if (bytes >= many) return (bytes / many).toFixed(bytes < 10 * many ? 2 : 1) + " " + unit;
  }
  return bytes + " bytes";
}

// A class or an output as people write it: pine_tree is a pine tree.
export const readable = (name) => name.replaceAll("_", " ");

export function element(kind, text, name) {
  const made = document.createElement(kind);
  if (text) made.textContent = text;
  if (name) made.className = name;
  return made;
}

export const at = (id) => document.getElementById(id);

export function unpacked(text) {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}

export function drawDots(canvas, bytes, width, height, channels, says) {
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

export function drawBytes(canvas, bytes, says) {
  const side = Math.ceil(Math.sqrt(bytes.length));
  drawDots(canvas, bytes, side, Math.ceil(bytes.length / side), 1, says);
}

export function drawHistogram(canvas, counts, says) {
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

export const spread = (counts) => `${counts.filter((count) => count > 0).length} of 256 byte values occur`;

// A whole image, at most 512 dots along a side.
export function drawOriginal(canvas, image) {
  const part = Math.min(1, 512 / Math.max(image.width, image.height));
  [canvas.width, canvas.height] = [image.width, image.height].map((length) => Math.max(1, Math.round(part * length)));
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  canvas.setAttribute("aria-label", `Your picture, ${image.width} by ${image.height} pixels`);
}

// Numbers of a map as greys, the lowest black.
export function drawMap(canvas, numbers, width, height, says) {
  const low = Math.min(...numbers), range = Math.max(...numbers) - low || 1;
  drawDots(canvas, numbers.map((number) => (255 * (number - low)) / range), width, height, 1, says);
}

// The middle of an image or a canvas, as large as the thumbnail.
export function drawThumbnail(thumbnail, image) {
  const side = Math.min(image.width, image.height);
  const from = [(image.width - side) / 2, (image.height - side) / 2, side, side];
  thumbnail.getContext("2d").drawImage(image, ...from, 0, 0, thumbnail.width, thumbnail.height);
  thumbnail.setAttribute("aria-label", "The picture that this answer is about");
  thumbnail.hidden = false;
}

export function empty(canvas, says) {
  canvas.width = canvas.width; // which empties it
  canvas.setAttribute("aria-label", says);
}
