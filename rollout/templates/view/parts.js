"use strict";
// Texts of games and models reach the page as text nodes only.

const byId = (id) => document.getElementById(id);

function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in element) element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

function shown(value) {
  if (value === null || value === undefined) return "–";
  if (typeof value !== "number" || Number.isInteger(value)) return String(value);
  return String(Number(value.toPrecision(5)));
}

function plural(count, word) {
  return `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;
}

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// A canvas of the size it is shown with, in pixels of the screen.
function sharpened(canvas) {
  const scale = window.devicePixelRatio || 1;
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  canvas.width = Math.max(1, Math.round(width * scale));
  canvas.height = Math.max(1, Math.round(height * scale));
  const pen = canvas.getContext("2d");
  pen.scale(scale, scale);
  return { pen, width, height };
}

// Calls a function with each position that a pointer is dragged to, from 0 to 1.
function onDrag(element, moved) {
  const report = (event) => {
    const box = element.getBoundingClientRect();
    moved(Math.min(1, Math.max(0, (event.clientX - box.left) / Math.max(1, box.width))));
  };
  element.addEventListener("pointerdown", (event) => {
    if (event.pointerType === "mouse") element.setPointerCapture(event.pointerId);
    report(event);
  });
  element.addEventListener("pointermove", (event) => {
    if (event.buttons & 1) report(event);
  });
}
