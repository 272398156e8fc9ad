// Filters of the requirements on the pages of the specification, by level and by chapter. Without scripts, all are shown.
(() => {
  const isId = (text) => /^[A-Z]{2,3}-\d/.test(text);
  const article = document.querySelector("article");
  const requirements = article ? [...inChapter(article), ...inContents(article)] : [];
  if (requirements.length < 2) return;

  function inChapter(root) {
    return [...root.querySelectorAll("h2[id]")].filter((head) => isId(head.id)).map((head) => {
      const parts = [head];
      for (let next = head.nextElementSibling; next && next.tagName !== "H2"; next = next.nextElementSibling)
        parts.push(next);
      const level = parts.map((part) => part.querySelector("th")).find(Boolean);
      return { id: head.id, parts, level: level ? level.textContent.trim() : "", area: "" };
    });
  }

  function inContents(root) {
    return [...root.querySelectorAll("li > a[id][data-level]")].filter((link) => isId(link.id)).map((link) => ({
      id: link.id,
      parts: [link.parentElement],
      level: link.dataset.level,
      area: link.getAttribute("href").split("#")[0].split("/").filter((part) => part && part !== "..").pop(),
    }));
  }

  const count = (of) => requirements.filter(of).length;
  const form = document.createElement("form");
  form.className = "filters";
  const boxes = [...new Set(requirements.map((each) => each.level))].map((level) => {
    const box = Object.assign(document.createElement("input"), { type: "checkbox", checked: true, value: level });
    const label = document.createElement("label");
    label.append(box, ` ${level} (${count((each) => each.level === level)})`);
    form.append(label);
    return box;
  });
  const areas = [...new Set(requirements.map((each) => each.area))].filter(Boolean);
  const area = document.createElement("select");
  area.setAttribute("aria-label", "Chapter");
  area.append(new Option("all chapters", ""), ...areas.map((name) => new Option(name.replaceAll("_", " "), name)));
  if (areas.length) form.append(area);

  function show() {
    const levels = new Set(boxes.filter((box) => box.checked).map((box) => box.value));
    for (const each of requirements) {
      const hidden = !levels.has(each.level) || Boolean(area.value && area.value !== each.area);
      for (const part of each.parts) part.hidden = hidden;
    }
  }

  // A link to one requirement shows it, whatever was chosen.
  function reveal() {
    const wanted = requirements.find((each) => `#${each.id}` === location.hash);
    if (!wanted || !wanted.parts[0].hidden) return;
    for (const box of boxes) box.checked = true;
    area.value = "";
    show();
    wanted.parts[0].scrollIntoView();
  }

  form.addEventListener("change", show);
  addEventListener("hashchange", reveal);
  const first = requirements[0].parts[0];
  const before = first.tagName === "LI" ? first.parentElement : first;
  before.before(form);
  show();
  reveal();
})();
