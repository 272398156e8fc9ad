// The file may come from anybody, so its content becomes text of elements, never markup.
(() => {
  const shown = document.getElementById("shown");
  const LABELS = JSON.parse(shown.dataset.labels);
  const VERDICTS = JSON.parse(shown.dataset.verdicts);
  const LONGEST = 20000;

  // Control characters and marks that change the direction of text are escaped, as in the other pages.
  const printable = (value) => {
    const text = typeof value === "string" ? value : value === undefined ? "" : JSON.stringify(value);
    const cut = text.length > LONGEST ? `${text.slice(0, LONGEST)}… (${text.length} characters)` : text;
    return cut.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g,
      (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
  };
  const element = (name, text, ...children) => {
    const made = document.createElement(name);
    if (text !== undefined && text !== "") made.textContent = printable(text);
    made.append(...children);
    return made;
  };
  const list = (value) => (Array.isArray(value) ? value : []);
  const number = (value) => (Number.isFinite(value) ? value : 0);
  const object = (value) => (value && typeof value === "object" && !Array.isArray(value) ? value : {});

  // Like conformance/report/stream.py, this skips unknown events and a truncated last line.
  const read = (text) => {
    const lines = text.split("\n").filter((line) => line.trim());
    const events = [];
    lines.forEach((line, index) => {
      let event;
      try {
        event = JSON.parse(line);
      } catch {
        if (index === 0) throw new Error("This is not a report: its first line is not JSON.");
        if (index < lines.length - 1) throw new Error(`Line ${index + 1} is not JSON.`);
        return;
      }
      events.push(object(event));
    });
    const header = events.length ? events[0] : {};
    if (header.event !== "RunStarted" || header.format !== shown.dataset.format)
      throw new Error(`This is not a report: it does not begin with RunStarted of format ${shown.dataset.format}.`);
    const readable = JSON.parse(shown.dataset.versions);
    if (!readable.includes(header.version))
      throw new Error(`This is a report of version ${JSON.stringify(header.version)}; this page reads versions ${readable.join(" and ")}.`);
    const of = (kind) => events.filter((event) => event.event === kind);
    return { header, footer: of("RunFinished").at(-1), results: of("Result"), divergences: of("Diverged") };
  };

  const banner = (run) => {
    const verdict = run.divergences.length ? "diverges" : run.footer ? printable(run.footer.verdict) : "incomplete";
    const known = ["conforms", "diverges", "incomplete", "nothing-compared"].includes(verdict) ? verdict : "incomplete";
    const sign = { conforms: "✓", diverges: "✗" }[known] || "⚠";
    const made = element("div", undefined, element("strong", `${sign} ${LABELS[verdict] || verdict}`));
    made.className = `banner ${known}`;
    made.setAttribute("role", "status");
    if (run.divergences.length)
      made.append(element("p", `${run.divergences.length} divergence${run.divergences.length > 1 ? "s" : ""} from the reference, each with its steps.`));
    for (const reason of list(run.footer && object(run.footer.details).missing)) made.append(element("p", `⚠ not compared: ${printable(reason)}`));
    if (!run.footer) made.append(element("p", "⚠ The run was cut off: it has no RunFinished."));
    return made;
  };

  const facts = ({ header }) => {
    const made = element("dl");
    made.className = "facts";
    const add = (name, value) => value && made.append(element("dt", name), element("dd", value));
    add("Implementations", list(header.implementations).map(printable).join(", "));
    add("Kafka", list(header.releases).map(printable).join(", "));
    add("Machines", list(header.machines).map(printable).join(", "));
    add("Run", [header.started, `profile ${printable(header.profile)}`, `level ${printable(header.level)}`, `seed ${printable(header.seed)}`].map(printable).join(" · "));
    add("Versions", Object.entries(object(header.versions)).map(([name, version]) => `${name} ${printable(version)}`).join(", "));
    add("Command", header.command);
    return made;
  };

  const counts = (result) => {
    const verdicts = Object.values(object(result.verdicts));
    return VERDICTS.map((verdict) => String(verdicts.filter((each) => each === verdict).length));
  };
  const results = (run) => {
    const head = ["machine", "implementation", "release", "steps", "divergences", ...VERDICTS.map((verdict) => LABELS[verdict])];
    const rows = run.results.map((result) => [
      result.machine, result.implementation, result.release, number(result.steps).toLocaleString("en"),
      String(number(result.divergences)), ...counts(result),
    ]);
    const cells = (names, kind) => {
      const row = element("tr");
      for (const name of names) row.append(element(kind, name));
      return row;
    };
    const table = element("table", undefined, element("thead", undefined, cells(head, "th")), element("tbody", undefined, ...rows.map((row) => cells(row, "td"))));
    table.className = "numbers";
    const scroll = element("div", undefined, table);
    scroll.className = "scroll";
    scroll.tabIndex = 0;
    return element("section", undefined, element("h2", "Results"), scroll);
  };

  const divergence = (event, index) => {
    const failure = object(event.failure);
    const made = element("details", undefined, element("summary",
      `${printable(event.clause) || "not covered by any clause"} · ${printable(event.machine)} machine · ${printable(event.implementation)} · Kafka ${printable(failure.release)}`));
    made.className = "difference";
    made.open = index === 0;
    for (const [id, level, statement] of list(event.requirements).map(list))
      made.append(element("p", `${printable(id)} (${printable(level)}): ${printable(statement)}`));
    const lines = [
      `differs in  ${list(failure.aspects).map(printable).join(", ")}`, `expected    ${printable(failure.expected)}`, `actual      ${printable(failure.actual)}`, "",
      ...list(event.steps).map((step, at) => `${at === failure.step ? ">" : " "} ${String(at + 1).padStart(3)}  ${printable(step)}`),
    ];
    made.append(element("pre", lines.join("\n")), element("pre", event.replay));
    return made;
  };

  const show = (text, name) => {
    shown.replaceChildren();
    try {
      const run = read(text);
      shown.append(banner(run), facts(run), results(run));
      if (run.divergences.length)
        shown.append(element("section", undefined, element("h2", "Divergences"), ...run.divergences.map(divergence)));
    } catch (error) {
      const made = element("p", `${printable(name)}: ${error.message}`);
      made.className = "banner error";
      made.setAttribute("role", "alert");
      shown.append(made);
    }
  };

  const take = async (file) => file && show(await file.text(), file.name);
  const drop = document.getElementById("drop");
  document.getElementById("file").addEventListener("change", (event) => take(event.target.files[0]));
  for (const kind of ["dragover", "dragleave", "drop"])
    addEventListener(kind, (event) => {
      event.preventDefault();
      drop.classList.toggle("over", kind === "dragover");
      if (kind === "drop") take(event.dataTransfer.files[0]);
    });
})();
