"""What a page does when it is touched: theme, switches between drawings, values read off curves. Plain JavaScript.

Nothing depends on it. Buttons are made here, so that none is there that does nothing.
"""

SCRIPT = """
(() => {
  "use strict";
  const make = (tag, attributes, text) => {
    const drawn = ["g", "line", "circle"].includes(tag);
    const made = drawn ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    if (text !== undefined) made.textContent = text;
    return made;
  };

  // A row of buttons of which one is pressed.
  const makeSwitch = (label, names, act) => {
    const group = make("div", {class: "switch", role: "group", "aria-label": label});
    group.append(make("span", {"aria-hidden": "true"}, label));
    const buttons = names.map((name, k) => make("button", {type: "button", "aria-pressed": k === 0}, name));
    buttons.forEach((button, k) => button.addEventListener("click", () => {
      buttons.forEach(other => other.setAttribute("aria-pressed", other === button));
      act(names[k]);
    }));
    group.append(...buttons);
    return group;
  };

  const bar = make("div", {class: "switches"});
  bar.append(makeSwitch("theme", ["auto", "light", "dark"], name => {
    if (name === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = name;
  }));
  document.querySelector("header").append(bar);

  // Drawings of the same thing: one of them at a time.
  for (const group of document.querySelectorAll("[data-picks]")) {
    const picks = JSON.parse(group.dataset.picks), chosen = {}, bar = make("div", {class: "switches"});
    const show = () => {
      for (const figure of group.children) {
        const own = Object.entries(JSON.parse(figure.dataset.pick || "{}"));
        figure.hidden = own.some(([name, value]) => chosen[name] !== value);
      }
    };
    for (const [name, values] of Object.entries(picks)) {
      chosen[name] = values[0];
      bar.append(makeSwitch(name, values, value => { chosen[name] = value; show(); }));
    }
    group.before(bar);
    show();
  }

  // Values of curves, under the mouse, a finger, or the arrow keys.
  for (const figure of document.querySelectorAll("[data-curves]")) {
    const data = JSON.parse(figure.dataset.curves), svg = figure.querySelector("svg");
    const stops = [...new Set(data.lines.flatMap(line => line.points.map(point => point[0])))].sort((a, b) => a - b);
    const layer = svg.appendChild(make("g", {class: "pointer", "aria-hidden": "true"}));
    const tip = figure.appendChild(make("div", {class: "tip", role: "status"}));
    let at = -1;
    const hide = () => { tip.hidden = true; layer.replaceChildren(); };
    const show = k => {
      at = Math.max(0, Math.min(stops.length - 1, k));
      const x = stops[at], [top, bottom] = data.box;
      layer.replaceChildren(make("line", {x1: x, x2: x, y1: top, y2: bottom}));
      tip.replaceChildren();
      for (const line of data.lines) {
        const point = line.points.find(point => point[0] === x);
        if (!point) continue;
        if (!tip.children.length) tip.append(make("div", {}, data.x + " " + point[2]));
        layer.append(make("circle", {cx: x, cy: point[1], r: 3, style: "fill:var(--" + line.color + ")"}));
        const row = make("div", {});
        row.append(make("i", {style: "background:var(--" + line.color + ")"}), make("span", {}, line.label),
          make("b", {}, point[3]));
        tip.append(row);
      }
      tip.hidden = false;
      const share = svg.clientWidth / svg.viewBox.baseVal.width, left = x * share;
      const room = figure.clientWidth - tip.offsetWidth, beside = left > figure.clientWidth / 2;
      tip.style.left = Math.max(0, Math.min(room, beside ? left - tip.offsetWidth - 10 : left + 10)) + "px";
      tip.style.top = top * share + "px";
    };
    const follow = event => {
      const x = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse()).x;
      show(stops.reduce((best, stop, k) => Math.abs(stop - x) < Math.abs(stops[best] - x) ? k : best, 0));
    };
    const keys = {ArrowLeft: () => show(at - 1), ArrowRight: () => show(at + 1), Home: () => show(0),
      End: () => show(stops.length - 1), Escape: hide};
    figure.tabIndex = 0;
    figure.setAttribute("role", "group");
    figure.setAttribute("aria-label", "Curves; the arrow keys read their values");
    figure.addEventListener("keydown", event => {
      if (keys[event.key]) { keys[event.key](); event.preventDefault(); }
    });
    svg.addEventListener("pointermove", follow);
    svg.addEventListener("pointerdown", follow);
    svg.addEventListener("pointerleave", event => { if (event.pointerType === "mouse") hide(); });
    figure.addEventListener("blur", hide);
    hide();
  }

  // On paper nothing can be opened.
  const opened = [];
  addEventListener("beforeprint", () => {
    for (const part of document.querySelectorAll("details:not([open])")) { part.open = true; opened.push(part); }
  });
  addEventListener("afterprint", () => { for (const part of opened.splice(0)) part.open = false; });
})();
""".strip()
