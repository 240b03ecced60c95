// Draws the blocks of the page (page.h) from the JSON in it. All texts go through textContent.
'use strict';
const data = JSON.parse(document.getElementById('data').textContent);
const svgSpace = document.getElementById('svg').namespaceURI;
const tip = document.getElementById('tip');

// ---- helpers

function make(tag, properties, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(properties || {})) {
    if (key === 'class') element.className = value;
    else if (key === 'text') element.textContent = value;
    else if (key === 'style') element.style.cssText = value;
    else element[key] = value;
  }
  element.append(...children);
  return element;
}

function draw(parent, tag, attributes, text) {
  const element = document.createElementNS(svgSpace, tag);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  parent.append(element);
  return element;
}

const colour = (index) => `var(--c${index % 8})`;
const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

function shortNumber(value) {
  if (value === 0) return '0';
  const size = Math.abs(value);
  for (const [from, sign] of [[1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e4, 'k']]) {
    if (size >= from) return trim((value / (sign === 'k' ? 1e3 : from)).toPrecision(3)) + ' ' + sign;
  }
  if (size >= 1000) return Math.round(value).toString();
  return size >= 1e-3 ? trim(value.toPrecision(3)) : value.toExponential(1);
}
function trim(text) { return text.includes('.') && !text.includes('e') ? text.replace(/\.?0+$/, '') : text; }

function shown(value, kind) {
  if (value === null || value === undefined) return '';
  if (kind === 'text' || typeof value !== 'number') return String(value);
  if (kind === 'count') return value.toLocaleString('en-US');
  if (kind === 'share') return (100 * value).toFixed(1) + ' %';
  if (kind === 'time') return value === 0 ? '0' : duration(value);
  if (Number.isInteger(value)) return value.toLocaleString('en-US');
  return Math.abs(value) >= 1e6 ? shortNumber(value) : Math.abs(value) >= 1000 ? value.toFixed(0) : Math.abs(value) < 1e-3 ? value.toExponential(2) : value.toPrecision(4);
}

function duration(seconds) {
  const [from, unit] = [[1, 's'], [1e-3, 'ms'], [1e-6, 'µs'], [0, 'ns']].find(([least]) => Math.abs(seconds) >= least);
  return (seconds / (from || 1e-9)).toPrecision(4) + ' ' + unit;
}

/// Round steps: 1, 2 or 5 times a power of ten.
function ticks(from, to, count) {
  const span = to - from;
  if (!(span > 0)) return [from];
  const rough = span / Math.max(count, 1), power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough * 0.999);
  const list = [];
  for (let i = Math.ceil(from / step - 1e-9); i * step <= to * (1 + 1e-9); ++i) list.push(i * step);
  return list;
}

function cut(text, width) {
  const letters = Math.max(Math.floor(width / 6.8), 4);
  return text.length <= letters ? text : text.slice(0, letters - 1) + '…';
}

function showTip(event, rows, title) {
  tip.replaceChildren(make('div', {text: title || '', style: 'font-weight:600'}));
  const table = make('table');
  for (const [name, value, series] of rows) {
    const mark = make('i', {style: series === undefined ? '' : `display:inline-block;width:9px;height:9px;border-radius:2px;background:${series}`});
    table.append(make('tr', {}, make('td', {}, mark), make('td', {text: name}), make('td', {text: value, style: 'text-align:right'})));
  }
  tip.append(table);
  tip.hidden = false;
  const box = tip.getBoundingClientRect(), left = event.pageX + 14, wide = document.documentElement.clientWidth;
  tip.style.left = clamp(left + box.width > wide - 8 ? event.pageX - box.width - 14 : left, 4, Math.max(4, wide - box.width - 8)) + 'px';
  tip.style.top = event.pageY + 14 + 'px';
}
function hideTip() { tip.hidden = true; }

function caption(block) {
  const title = make('p', {class: 'caption', text: block.caption});
  const unit = block.unit || (block.y && block.y.unit);
  if (unit) title.append(make('span', {class: 'unit', text: '  ' + unit}));
  return title;
}

function legend(names) {
  const list = make('div', {class: 'legend'});
  names.forEach((name, i) => list.append(make('span', {title: name}, make('i', {style: `background:${colour(i)}`}), name.length > 64 ? name.slice(0, 63) + '…' : name)));
  return list;
}

/// Charts that have been made and not drawn: they are once they are in the document and have a width.
let undrawn = [];
function drawCharts() {
  const charts = undrawn;
  undrawn = [];
  for (const redraw of charts) redraw();
}

/// A card with a drawing that is made anew when its width changes.
function chart(block, head, paint) {
  const holder = make('div'), card = make('div', {class: 'card'}, caption(block), ...head, holder);
  let drawn = 0;
  const redraw = () => {
    const width = Math.floor(holder.clientWidth);
    if (width === 0 || width === drawn) return;
    drawn = width;
    const svg = document.createElementNS(svgSpace, 'svg');
    paint(svg, width);
    svg.addEventListener('pointerleave', hideTip);
    holder.replaceChildren(svg);
  };
  undrawn.push(redraw);
  new ResizeObserver(redraw).observe(holder);
  return card;
}

function size(svg, width, height) {
  svg.setAttribute('viewBox', `0 0 ${width} ${height}`);
  svg.setAttribute('height', height);
}

function timeAxis(svg, left, right, y, from, to, unit, height) {
  const list = ticks(from, to, Math.max(2, (right - left) / 90));
  for (const at of list) {
    const x = left + (at - from) / (to - from || 1) * (right - left);
    draw(svg, 'line', {x1: x, x2: x, y1: y - height, y2: y, class: 'grid'});
    const last = at === list[list.length - 1];
    draw(svg, 'text', {x, y: y + 16, 'text-anchor': x > right - 30 ? 'end' : x < left + 10 ? 'start' : 'middle'},
         shortNumber(at) + (last ? ' ' + unit : ''));
  }
  draw(svg, 'line', {x1: left, x2: right, y1: y, y2: y, class: 'axis'});
}

/// Parts of the intervals of a row, [interval, begin, end, place, of]: where several overlap, each has its part of the row's height.
function segments(list) {
  const bounds = [...new Set(list.flatMap((one) => [one[2], one[3]]))].sort((x, y) => x - y);
  const parts = [];
  let next = 0, active = [];
  for (let i = 0; i + 1 < bounds.length; ++i) {
    active = active.filter((one) => one[3] > bounds[i]);
    for (; next < list.length && list[next][2] <= bounds[i]; ++next) if (list[next][3] > bounds[i]) active.push(list[next]);
    active.forEach((one, place) => {
      const last = one.part;
      if (last && last[2] === bounds[i] && last[3] === place && last[4] === active.length) last[2] = bounds[i + 1];
      else parts.push(one.part = [one, bounds[i], bounds[i + 1], place, active.length]);
    });
  }
  return parts;
}

// ---- blocks

const blocks = {
  text: (block) => make('p', {class: 'text', text: block.text}),
  code: (block) => make('pre', {text: block.text}),

  figures(block) {
    return make('div', {class: 'figures'}, ...block.items.map((item) => make('div', {class: 'figure'},
        make('div', {class: 'label', text: item.label}), make('div', {class: 'value', text: item.value}), make('div', {class: 'note', text: item.note}))));
  },

  table(block) {
    const order = {column: -1, up: false};
    let wanted = '';
    const body = make('tbody'), heads = [];
    const count = make('span');
    const fill = () => {
      let rows = block.rows.filter((row) => wanted === '' || row.some((cell) => typeof cell === 'string' && cell.toLowerCase().includes(wanted)));
      if (order.column >= 0) {
        const compare = (a, b) => a === null ? 1 : b === null ? -1 : typeof a === 'number' && typeof b === 'number' ? a - b : String(a).localeCompare(String(b));
        rows = rows.slice().sort((a, b) => (order.up ? 1 : -1) * compare(a[order.column], b[order.column]));
      }
      count.textContent = rows.length === block.rows.length ? '' : `${rows.length} of ${block.rows.length} rows`;
      body.replaceChildren(...rows.map((row) => make('tr', {}, ...row.map((cell, i) => {
        const text = shown(cell, block.columns[i].kind);
        return make('td', {class: block.columns[i].kind === 'text' ? '' : 'number', text, title: text.length > 40 ? text : ''});
      }))));
      heads.forEach((head, i) => { head.lastChild.textContent = i !== order.column ? '' : order.up ? '▲' : '▼'; });
    };
    block.columns.forEach((column, i) => {
      const unit = ['share', 'text', 'time'].includes(column.kind) || column.unit === column.name ? '' : column.unit;
      const head = make('th', {class: column.kind === 'text' ? '' : 'number', tabIndex: 0},
                        make('span', {class: 'name', text: column.name}), make('span', {class: 'unit', text: unit}), make('span', {class: 'arrow'}));
      if (column.meaning) head.title = column.meaning + (column.unit ? ` (${column.unit})` : '');
      const sort = () => {
        order.up = order.column === i ? !order.up : column.kind === 'text';
        order.column = i;
        fill();
      };
      head.addEventListener('click', sort);
      head.addEventListener('keydown', (event) => { if (event.key === 'Enter') sort(); });
      heads.push(head);
    });
    const card = make('div', {class: 'card'}, caption(block));
    if (block.rows.length > 12) {
      const input = make('input', {type: 'search', placeholder: 'rows that contain …'});
      input.addEventListener('input', () => { wanted = input.value.toLowerCase(); fill(); });
      card.append(make('div', {class: 'tools'}, input, count));
    }
    fill();
    card.append(make('div', {class: 'scroll'}, make('table', {}, make('thead', {}, make('tr', {}, ...heads)), body)));
    return card;
  },

  bars(block) {
    const names = [...new Set(block.groups.flatMap((group) => group.bars.map((bar) => bar.series)))];
    const values = block.groups.flatMap((group) => group.bars.flatMap((bar) => [bar.value, ...(bar.range || [])]));
    const most = Math.max(block.reference || 0, ...values, 1e-12), least = Math.min(0, ...values);
    return chart(block, names.length > 1 ? [legend(names)] : [], (svg, width) => {
      const longest = Math.max(...block.groups.flatMap((group) => group.bars.map((bar) => bar.label.length)));
      const left = clamp(longest * 6.8 + 18, 40, width * 0.4), right = width - 52, bar = 16, gap = 4;
      let y = 4;
      const place = (value) => left + (value - least) / (most - least) * (right - left), zero = place(0);
      const marks = [];
      for (const group of block.groups) {
        if (group.name) draw(svg, 'text', {x: 0, y: y + 13, class: 'strong'}, cut(group.name, width));
        y += group.name ? 22 : 0;
        for (const one of group.bars) {
          draw(svg, 'text', {x: left - 8, y: y + 12, 'text-anchor': 'end'}, cut(one.label, left - 12));
          const end = place(one.value), range = one.range || [], fill = colour(names.indexOf(one.series));
          const box = draw(svg, 'rect', {x: Math.min(zero, end), y, width: Math.max(Math.abs(end - zero), 1), height: bar, rx: 2, fill});
          if (one.range) {
            const [from, to] = range.map(place), middle = y + bar / 2;
            draw(svg, 'path', {d: `M${from} ${middle}H${to}M${from} ${middle - 4}v8M${to} ${middle - 4}v8`, class: 'range'});
          }
          const facts = [[one.label, shown(one.value) + ' ' + block.unit, fill]];
          if (one.range) facts.push(['least to most', range.map(shown).join(' to ') + ' ' + block.unit, fill]);
          box.addEventListener('pointermove', (event) => showTip(event, facts, group.name));
          box.addEventListener('pointerleave', hideTip);
          draw(svg, 'text', {x: Math.max(zero, end, ...range.map(place)) + 6, y: y + 12, class: 'strong'}, shown(one.value));
          y += bar + gap;
        }
        y += 10;
      }
      if (least < 0) draw(svg, 'line', {x1: zero, x2: zero, y1: 0, y2: y - 10, class: 'reference'});
      if (block.reference !== null) marks.push(draw(svg, 'line', {x1: place(block.reference), x2: place(block.reference), y1: 0, y2: y - 10, class: 'reference'}));
      size(svg, width, y - 6);
    });
  },

  divided(block) {
    return chart(block, [legend(block.parts)], (svg, width) => {
      const longest = Math.max(...block.rows.map((row) => row.name.length));
      const wide = width > 560, left = wide ? clamp(longest * 6.8 + 18, 40, width * 0.38) : 0, bar = 18;
      let y = 2;
      for (const row of block.rows) {
        if (wide) draw(svg, 'text', {x: left - 8, y: y + 13, 'text-anchor': 'end'}, cut(row.name, left - 12));
        else draw(svg, 'text', {x: 0, y: y + 12}, cut(row.name, width));
        if (!wide) y += 17;
        const sum = row.values.reduce((a, b) => a + b, 0) || 1;
        let x = left;
        row.values.forEach((value, i) => {
          const part = value / sum * (width - left);
          if (part > 0.3) draw(svg, 'rect', {x, y, width: Math.max(part - 1, 0.3), height: bar, fill: colour(i)});
          if (part > 44) draw(svg, 'text', {x: x + part / 2, y: y + 13, 'text-anchor': 'middle', class: 'inside'}, (100 * value / sum).toFixed(0) + ' %');
          x += part;
        });
        const area = draw(svg, 'rect', {x: left, y, width: width - left, height: bar, fill: 'transparent'});
        area.addEventListener('pointermove', (event) => showTip(event, row.values.map((value, i) => [block.parts[i], (100 * value / sum).toFixed(1) + ' %', colour(i)]), row.name));
        area.addEventListener('pointerleave', hideTip);
        y += bar + 8;
      }
      size(svg, width, y);
    });
  },

  lines(block) {
    const xs = block.x.values, points = block.style === 'points', stacked = block.style === 'stacked';
    const series = block.series, count = xs.length;
    // Levels of each series: its values, on top of those before it when stacked.
    const level = [];
    series.forEach((one, s) => level.push(one.values.map((value, i) => value + (stacked && s > 0 ? level[s - 1][i] : 0))));
    const from = points ? Math.min(...xs) : block.x.begin, to = Math.max(...xs);
    const most = block.y.max !== null ? block.y.max : Math.max(1e-12, ...level.flat()) * 1.05;
    return chart(block, series.length > 1 ? [legend(series.map((one) => one.name))] : [], (svg, width) => {
      const left = 46, right = width - 8, top = 8, bottom = 172;
      const px = (x) => left + (x - from) / (to - from || 1) * (right - left);
      const py = (y) => bottom - clamp(y / most, 0, 1) * (bottom - top);
      timeAxis(svg, left, right, bottom, from, to, block.x.unit, bottom - top);
      for (const at of ticks(0, most, 4)) {
        draw(svg, 'line', {x1: left, x2: right, y1: py(at), y2: py(at), class: 'grid'});
        draw(svg, 'text', {x: left - 6, y: py(at) + 4, 'text-anchor': 'end'}, shortNumber(at));
      }
      const outline = (values) => {
        let path = '', before = points ? null : from;
        for (let i = 0; i < count; ++i) {
          if (values[i] === null) continue;  // this line is not there
          if (points) path += `${path ? 'L' : 'M'}${px(xs[i]).toFixed(1)} ${py(values[i]).toFixed(1)}`;
          else path += `${i ? 'L' : 'M'}${px(before).toFixed(1)} ${py(values[i]).toFixed(1)}H${px(xs[i]).toFixed(1)}`;
          before = xs[i];
        }
        return path;
      };
      if (stacked) {
        for (let s = series.length - 1; s >= 0; --s) {
          draw(svg, 'path', {d: outline(level[s]) + `L${px(to)} ${bottom}L${px(from)} ${bottom}Z`, fill: colour(s)});
        }
      } else {
        series.forEach((one, s) => {
          draw(svg, 'path', {d: outline(one.values), fill: 'none', stroke: colour(s), 'stroke-width': 1.8, 'stroke-linejoin': 'round'});
          if (points) one.values.forEach((value, i) => value !== null && draw(svg, 'circle', {cx: px(xs[i]), cy: py(value), r: 3, fill: colour(s)}));
        });
      }
      const cursor = draw(svg, 'line', {y1: top, y2: bottom, class: 'cursor', visibility: 'hidden'});
      svg.addEventListener('pointermove', (event) => {
        const x = from + (event.clientX - svg.getBoundingClientRect().left - left) / (right - left) * (to - from);
        let i = xs.findIndex((end) => end >= x);
        if (i < 0) i = count - 1;
        if (points && i > 0 && x - xs[i - 1] < xs[i] - x) --i;
        cursor.setAttribute('x1', px(points ? xs[i] : clamp(x, from, to)));
        cursor.setAttribute('x2', px(points ? xs[i] : clamp(x, from, to)));
        cursor.setAttribute('visibility', 'visible');
        const title = points ? `${shown(xs[i])} ${block.x.unit}` : `${shown(i ? xs[i - 1] : from)} to ${shown(xs[i])} ${block.x.unit}`;
        showTip(event, series.map((one, s) => [one.name, one.values[i] === null ? '' : shown(one.values[i]) + ' ' + block.y.unit, colour(s)]), title);
      });
      svg.addEventListener('pointerleave', () => cursor.setAttribute('visibility', 'hidden'));
      size(svg, width, bottom + 24);
    });
  },

  timeline(block) {
    const last = 7;  // there are 8 colours; what comes later shares the last one
    const names = block.series.length > 8 ? [...block.series.slice(0, 7), `${block.series.length - 7} others`] : block.series;
    const byRow = block.rows.map(() => []);
    for (const interval of block.intervals) byRow[interval[0]].push(interval);
    for (const list of byRow) list.sort((x, y) => x[2] - y[2]);
    return chart(block, [legend(names)], (svg, width) => {
      const left = clamp(Math.max(...block.rows.map((row) => row.length)) * 6.8 + 8, 20, 110), right = width - 8;
      const height = clamp(560 / block.rows.length, 5, 20), bottom = 4 + height * block.rows.length;
      const px = (x) => left + x / (block.end || 1) * (right - left);
      timeAxis(svg, left, right, bottom, 0, block.end, block.unit, bottom);
      const every = Math.ceil(13 / height), paths = new Map();
      byRow.forEach((list, row) => {
        const y = 4 + row * height;
        if (row % every === 0) draw(svg, 'text', {x: left - 6, y: y + Math.min(height, 13) - 2, 'text-anchor': 'end'}, block.rows[row]);
        for (const [interval, begin, end, place, of] of segments(list)) {
          const group = Math.min(interval[1], last), faint = interval[4] < 0.34 ? 0.35 : interval[4] < 0.67 ? 0.6 : 1;
          const key = group + '/' + faint, x = px(begin), wide = Math.max(px(end) - x, 0.6).toFixed(1), tall = (height - 1) / of;
          paths.set(key, (paths.get(key) || '') + `M${x.toFixed(1)} ${(y + place * tall).toFixed(1)}h${wide}v${tall.toFixed(1)}h-${wide}z`);
        }
      });
      for (const [key, path] of paths) {
        const [group, faint] = key.split('/');
        draw(svg, 'path', {d: path, fill: colour(Number(group)), opacity: faint});
      }
      svg.addEventListener('pointermove', (event) => {
        const box = svg.getBoundingClientRect();
        const row = Math.floor((event.clientY - box.top - 4) / height), at = (event.clientX - box.left - left) / (right - left) * block.end;
        if (row < 0 || row >= byRow.length || at < 0) return hideTip();
        const found = byRow[row].filter((one) => one[2] <= at && at <= one[3]);
        showTip(event, found.map((one) => [block.series[one[1]], `${shown(one[2])} to ${shown(one[3])} ${block.unit}` + (one[4] < 0.995 ? `, there ${(100 * one[4]).toFixed(0)} %` : ''),
                                           colour(Math.min(one[1], last))]), `${block.rows[row]} at ${shown(at)} ${block.unit}`);
      });
      size(svg, width, bottom + 24);
    });
  },

  choice(block) {
    const select = make('select'), content = make('div');
    block.options.forEach((option, i) => select.append(make('option', {value: i, text: option.name})));
    const show = () => content.replaceChildren(...layOut(block.options[select.selectedIndex].blocks));
    select.addEventListener('change', () => {
      show();
      drawCharts();
    });
    show();
    return make('div', {}, make('label', {class: 'tools'}, block.label, select), content);
  },
};

/// Line charts with few lines stand in pairs where there is room.
function layOut(list) {
  const made = [];
  let pair = null;
  for (const block of list) {
    const element = blocks[block.type](block);
    if (block.type !== 'lines' || block.series.length > 4) pair = null;
    else if (pair === null) made.push(pair = make('div', {class: 'pair'}));
    if (pair === null) made.push(element);
    else pair.append(element);
  }
  return made;
}

// ---- the page

document.getElementById('title').textContent = data.title;
document.getElementById('subtitle').textContent = data.subtitle;
const root = document.documentElement;
document.getElementById('theme').addEventListener('click', () => {
  const dark = root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  root.dataset.theme = dark ? 'light' : 'dark';
});
data.sections.forEach((section, i) => {
  document.getElementById('nav').append(make('a', {href: '#s' + i, text: section.title}));
  document.getElementById('main').append(make('section', {id: 's' + i}, make('h2', {text: section.title}), ...layOut(section.blocks)));
});
drawCharts();
