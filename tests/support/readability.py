"""Script for a browser, which returns the texts of a page that have too little contrast."""

from __future__ import annotations

UNREADABLE = """() => {
  const canvas = Object.assign(document.createElement("canvas"), {width: 1, height: 1});
  const pen = canvas.getContext("2d", {willReadFrequently: true});
  const rgba = (colour) => {  // whatever the syntax of the colour
    pen.clearRect(0, 0, 1, 1);
    pen.fillStyle = colour;
    pen.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = pen.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = (top, below) => top.slice(0, 3).map((c, i) => c * top[3] + below[i] * (1 - top[3]));
  const luminance = (colour) => {
    const [r, g, b] = colour.map((c) => c / 255).map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const background = (element) => {
    if (!element) return rgba(matchMedia("(prefers-color-scheme: dark)").matches
      && getComputedStyle(document.documentElement).colorScheme.includes("dark") ? "#121212" : "#fff").slice(0, 3);
    const own = rgba(getComputedStyle(element).backgroundColor);
    return own[3] === 1 ? own.slice(0, 3) : over(own, background(element.parentElement));
  };
  const found = [];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement, text = texts.currentNode.textContent.trim();
    const inPicture = element.closest("svg") !== null;
    if (!text || !element.checkVisibility({checkOpacity: true, checkVisibilityCSS: true})) continue;
    if (["SCRIPT", "STYLE", "TITLE"].includes(element.tagName.toUpperCase())) continue;
    const style = getComputedStyle(element), below = background(element);
    const ink = over(rgba(inPicture ? style.fill : style.color), below);
    const [light, dark] = [luminance(ink), luminance(below)].sort((a, b) => b - a);
    const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && style.fontWeight >= 700);
    const contrast = (light + 0.05) / (dark + 0.05);
    // Where text of a picture lies on a shape of it, the shape decides, and no style says which it is.
    if (!inPicture && contrast < (large ? 3 : 4.5))
      found.push(`${element.tagName} ${contrast.toFixed(2)} ${text.slice(0, 40)}`);
  }
  return [...new Set(found)];
}"""
"""The texts with less contrast than level AA of WCAG 2.2 requires."""
