// The page can be read without this script, which filters rows and unfolds the target of a link.
(() => {
  const words = document.querySelector("#filter"), only = document.querySelector("#only");
  const apply = () => {
    const wanted = words.value.trim().toLowerCase(), verdict = only.value;
    for (const row of document.querySelectorAll("[data-words]")) {
      const shown = row.dataset.words.toLowerCase().includes(wanted) && (!verdict || (row.dataset.verdicts || "").split(" ").includes(verdict));
      row.hidden = !shown;
    }
    for (const chapter of document.querySelectorAll("details.chapter"))
      if (wanted || verdict) chapter.open = !!chapter.querySelector("tbody tr:not([hidden])");
  };
  words.addEventListener("input", apply);
  only.addEventListener("change", apply);
  const reveal = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    target.hidden = false;
    for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
    target.scrollIntoView();
  };
  addEventListener("hashchange", reveal);
  reveal();
})();
