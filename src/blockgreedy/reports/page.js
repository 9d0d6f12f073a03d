// What a page does when it is touched: theme, switches between drawings, values read off curves, the features of a
// model. Nothing depends on it: buttons are made here, so that none is there that does nothing.
(() => {
  "use strict";
  const make = (tag, attributes, ...inner) => {
    const drawn = ["g", "line", "circle"].includes(tag);
    const made = drawn ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...inner);
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

  // Values of curves, points, bars and cells, under the mouse, a finger, or the arrow keys.
  const NEAR = 14;  // points: how close the pointer must be to a line that is quiet
  for (const figure of document.querySelectorAll("[data-curves]")) {
    const data = JSON.parse(figure.dataset.curves), svg = figure.querySelector("svg"), [top, bottom] = data.box;
    // A stop is what is shown at once: one point, or all points of one x.
    const all = data.lines.flatMap(line => line.points.map(point => ({x: point[0], y: point[1], line, point})));
    const stops = data.nearest ? all
      : [...new Set(all.map(spot => spot.x))].sort((a, b) => a - b).map(x => ({x}));
    const chosen = svg.appendChild(make("g", {class: "chosen", "aria-hidden": "true"}));
    const layer = svg.appendChild(make("g", {class: "pointer", "aria-hidden": "true"}));
    const tip = figure.appendChild(make("div", {class: "tip", role: "status"}));
    let at = -1;
    const hide = () => { tip.hidden = true; layer.replaceChildren(); };
    const row = (name, value, color) => {
      const mark = color ? [make("i", {style: "background:var(--" + color + ")"})] : [];
      tip.append(make("div", {}, ...mark, make("span", {}, name), make("b", {}, value)));
    };
    const dot = spot => layer.append(
      make("circle", {cx: spot.x, cy: spot.y, r: 3, style: "fill:var(--" + spot.line.color + ")"}));
    const show = (k, pointer) => {
      at = Math.max(0, Math.min(stops.length - 1, k));
      const stop = stops[at];
      layer.replaceChildren();
      tip.replaceChildren();
      if (data.nearest) {
        const {line, point} = stop;
        if (data.lines.length > 1) tip.append(make("div", {}, make("span", {}, line.label)));
        row(data.x, point[2]);
        row(data.y, point[3], line.color);
        if (point.length > 4) row(point[4], point[5]);
        dot(stop);
      } else {
        layer.append(make("line", {x1: stop.x, x2: stop.x, y1: top, y2: bottom}));
        const here = all.filter(spot => spot.x === stop.x);
        const quiet = here.filter(spot => spot.line.quiet);
        const far = spot => pointer ? Math.abs(spot.y - pointer.y) : NEAR;
        const close = quiet.reduce((best, spot) => !best || far(spot) < far(best) ? spot : best, null);
        row(data.x, here[0].point[2]);
        for (const spot of here) {
          if (spot.line.quiet && !(spot === close && far(spot) < NEAR)) continue;
          row(spot.line.label, spot.point[3], spot.line.color);
          dot(spot);
        }
      }
      tip.hidden = false;
      const share = svg.clientWidth / svg.viewBox.baseVal.width, left = stop.x * share;
      const room = figure.clientWidth - tip.offsetWidth, beside = left > figure.clientWidth / 2;
      tip.style.left = Math.max(0, Math.min(room, beside ? left - tip.offsetWidth - 10 : left + 10)) + "px";
      tip.style.top = (data.nearest ? Math.max(top, stop.y - 60) : top) * share + "px";
    };
    const place = event => new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    const follow = event => {
      const {x, y} = place(event);
      const far = stop => Math.abs(stop.x - x) + (data.nearest ? Math.abs(stop.y - y) : 0);
      show(stops.reduce((best, stop, k) => far(stop) < far(stops[best]) ? k : best, 0), {x, y});
    };
    const keys = {ArrowLeft: () => show(at - 1), ArrowRight: () => show(at + 1), Home: () => show(0),
      End: () => show(stops.length - 1), Escape: hide};
    figure.tabIndex = 0;
    figure.setAttribute("role", "group");
    figure.setAttribute("aria-label", "Values of the picture; the arrow keys read them");
    figure.addEventListener("keydown", event => {
      if (keys[event.key]) { keys[event.key](); event.preventDefault(); }
    });
    svg.addEventListener("pointermove", follow);
    svg.addEventListener("pointerdown", follow);
    svg.addEventListener("pointerleave", event => { if (event.pointerType === "mouse") hide(); });
    figure.addEventListener("blur", hide);
    hide();
    // Curves over alpha and the slider of a path follow each other.
    if (data.x === "alpha" && data.log) {
      const [origin, slope] = data.log;
      addEventListener("alpha-chosen", event => {
        const x = origin + slope * Math.log10(event.detail);
        chosen.replaceChildren(make("line", {x1: x, x2: x, y1: top, y2: bottom}));
      });
      svg.addEventListener("click", event => {
        const alpha = 10 ** ((place(event).x - origin) / slope);
        dispatchEvent(new CustomEvent("alpha-asked", {detail: alpha}));
      });
    }
  }

  // The features of a model: at the alpha of the slider, found by name, and as a file.
  const signed = value => {
    const size = Math.abs(value);
    return (value < 0 ? "−" : "+") + (size > 0 && size < 1e-4 ? size.toExponential(3) : size.toPrecision(4));
  };
  const whole = value => value.toLocaleString("en");
  const SHOWN = 50;  // rows of what was found, before the button for more
  for (const box of document.querySelectorAll("[data-features]")) {
    const data = JSON.parse(box.dataset.features);
    let now = data.open, most = SHOWN;
    const point = () => data.points[now];
    const rows = () => point().of.map((feature, k) => [feature, point().weights[k]]);
    const same = feature => data.same && data.same[feature] || ["", ""];  // a line on its copies, and their names
    const tableRow = ([feature, weight], largest) => {
      const [line, copies] = same(feature);
      const cells = [make("th", {scope: "row"}, data.names[feature]), make("td", {class: "number"}, signed(weight))];
      if (line) cells[0].append(make("small", {title: copies}, line));
      if (data.support) cells.push(make("td", {class: "number"}, whole(data.support[feature])));
      const width = (100 * Math.abs(weight) / largest).toFixed(1);
      const drawn = make("span", {class: weight < 0 ? "minus" : "plus", style: "width:" + width + "%"});
      return make("tr", {}, ...cells, make("td", {class: "bar"}, drawn));
    };
    const fill = (body, found) => {
      const largest = Math.max(...rows().map(([, weight]) => Math.abs(weight)), 1e-300);
      body.replaceChildren(...found.map(row => tableRow(row, largest)));
    };

    const search = make("input", {type: "search", placeholder: "part of a name", "aria-label": "Find a feature"});
    const label = make("label", {}, "Find a feature ", search);
    const save = make("button", {type: "button"}, "Download CSV");
    const count = make("p", {class: "note", role: "status"});
    const foundBody = make("tbody", {});
    const found = box.querySelector(".sides table").cloneNode(true);
    found.querySelector("caption span").textContent = "Features found, largest weights first";
    found.querySelector("tbody").replaceWith(foundBody);
    const foundBox = make("div", {class: "table", tabindex: "0", role: "region", "aria-label": "Features found"}, found);
    const more = make("button", {type: "button"}, "Show more");
    box.querySelector(".sides").after(make("div", {class: "tools"}, label, save), count, foundBox, more);

    const find = () => {
      const asked = search.value.trim().toLowerCase();
      const isHit = name => name.toLowerCase().includes(asked);
      const hits = asked ? rows().filter(([j]) => isHit(data.names[j]) || isHit(same(j)[1])) : [];
      fill(foundBody, hits.slice(0, most));
      foundBox.hidden = hits.length === 0;
      more.hidden = hits.length <= most;
      const left = point().of.length, total = whole(point().nonzeros);
      const kept = left < point().nonzeros ? "the " + whole(left) + " largest of " + total : "all " + total;
      count.textContent = asked ? whole(hits.length) + " of " + kept + " nonzero weights match"
        : point().nonzeros === 1 ? "Searches the only nonzero weight." : "Searches " + kept + " nonzero weights.";
    };
    search.addEventListener("input", () => { most = SHOWN; find(); });
    more.addEventListener("click", () => { most *= 4; find(); });

    const quoted = text => '"' + text.replaceAll('"', '""') + '"';
    save.addEventListener("click", () => {
      const columns = {feature: j => quoted(data.names[j]), weight: (_, weight) => weight};
      if (data.support) columns.rows = j => data.support[j];
      if (data.same) columns["same as"] = j => quoted(same(j)[1]);
      const lines = rows().map(row => Object.values(columns).map(cell => cell(...row)).join(","));
      const text = [Object.keys(columns).join(","), ...lines, ""].join("\n");
      const url = URL.createObjectURL(new Blob([text], {type: "text/csv"}));
      const name = data.points.length > 1 ? "features-alpha-" + point().alpha + ".csv" : "features.csv";
      make("a", {href: url, download: name}).click();
      setTimeout(() => URL.revokeObjectURL(url), 10000);
    });

    const show = () => {
      const sides = [rows().filter(row => row[1] > 0), rows().filter(row => row[1] < 0)];
      box.querySelectorAll(".sides tbody").forEach((body, k) => fill(body, sides[k].slice(0, data.top)));
      box.querySelectorAll(".sides caption span").forEach((caption, k) => {
        caption.textContent = data.captions[k] + " (" + whole(point().signs[k]) + ")";
      });
      box.querySelectorAll("[data-fact]").forEach(fact => { fact.textContent = point().facts[fact.dataset.fact]; });
      const sources = box.querySelector(".sources tbody");
      if (sources) {
        const largest = Math.max(...point().sources.map(source => source[1]), 1);
        sources.replaceChildren(...point().sources.map(([name, n, of, weight]) => make("tr", {},
          make("th", {scope: "row"}, name), make("td", {class: "number"}, whole(n)),
          make("td", {class: "number"}, whole(of)), make("td", {class: "number"}, signed(weight)),
          make("td", {class: "bar"}, make("span", {class: "plus", style: "width:" + (100 * n / largest) + "%"})))));
      }
      find();
    };

    if (data.points.length > 1) {
      const slider = make("input", {type: "range", min: 0, max: data.points.length - 1, step: 1, value: now,
        "aria-label": "alpha"});
      const ends = make("div", {class: "ends", "aria-hidden": "true"}, make("span", {}, "large alpha, few features"),
        make("span", {}, "small alpha, many features"));
      const move = k => {
        now = Math.max(0, Math.min(data.points.length - 1, k));
        slider.value = now;
        slider.setAttribute("aria-valuetext", point().alpha);
        for (const button of jumps.querySelectorAll("button")) {
          button.setAttribute("aria-pressed", Number(button.dataset.at) === now);
        }
        dispatchEvent(new CustomEvent("alpha-chosen", {detail: Number(point().alpha)}));
        show();
      };
      const jumps = make("div", {class: "switch", role: "group", "aria-label": "go to"});
      for (const [name, k] of data.jumps) {
        const button = make("button", {type: "button", "data-at": k}, name);
        button.addEventListener("click", () => move(k));
        jumps.append(button);
      }
      box.querySelector(".slider").append(make("div", {}, slider, ends), jumps);
      slider.addEventListener("input", () => move(Number(slider.value)));
      addEventListener("alpha-asked", event => {
        const far = k => Math.abs(Math.log(data.points[k].alpha / event.detail));
        move(data.points.reduce((best, _, k) => far(k) < far(best) ? k : best, 0));
      });
      move(now);
    } else show();
  }

  // Links to a part that is folded open it; on paper nothing can be opened.
  const unfold = () => {
    const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target) for (const part of target.querySelectorAll(":scope > details")) part.open = true;
  };
  addEventListener("hashchange", unfold);
  unfold();
  const opened = [];
  addEventListener("beforeprint", () => {
    for (const part of document.querySelectorAll("details:not([open])")) { part.open = true; opened.push(part); }
  });
  addEventListener("afterprint", () => { for (const part of opened.splice(0)) part.open = false; });
})();
