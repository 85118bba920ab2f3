"""The style sheet of reports, for light and dark. Its rules only apply inside of a report."""

STYLE = """
.cinductor { --page: #ffffff; --panel: #f6f7f9; --ink: #1c2128; --soft: #59636e; --rule: #dde2e8;
  --accent: #0b62a8; --warn: #8a5300; --warn-back: #fff4dc; --good: #1a6f3c; --bad: #b3261e;
  --k0: #1b6ca8; --k1: #a2480f; --k2: #2c7a3f; --k3: #8a3d9c; --k4: #a8293f; --k5: #0f7480;
  --k6: #6b5b00; --k7: #5254b8; --chip: #ffffff; --key: #8a3d9c; --string: #2c7a3f; --comment: #6a737d; }
@media (prefers-color-scheme: dark) {
.cinductor { --page: #15181d; --panel: #1d2127; --ink: #e4e8ee; --soft: #9aa5b1; --rule: #333a43;
  --accent: #6cb6f5; --warn: #f0c066; --warn-back: #3a2f14; --good: #7ccf94; --bad: #ff8a80;
  --k0: #6cb6f5; --k1: #f0a268; --k2: #7ccf94; --k3: #d39be3; --k4: #f58a9c; --k5: #62ccd8;
  --k6: #d6c65a; --k7: #a5a8ff; --chip: #15181d; --key: #d39be3; --string: #7ccf94; --comment: #8b949e; } }
.cinductor { background: var(--page); color: var(--ink); font: 14px/1.5 system-ui, sans-serif;
  padding: 20px 24px; max-width: 1120px; margin: 0 auto; box-sizing: border-box; text-align: left; }
.cinductor * { box-sizing: border-box; }
.cinductor h1 { font-size: 22px; margin: 0; color: var(--ink); }
.cinductor h2 { font-size: 15px; margin: 30px 0 8px; padding-bottom: 4px; border-bottom: 1px solid var(--rule);
  color: var(--ink); }
.cinductor p { margin: 4px 0; }
.cinductor a { color: var(--accent); text-decoration: none; }
.cinductor a:hover { text-decoration: underline; }
.cinductor code, .cinductor pre { font: 12.5px/1.5 ui-monospace, "DejaVu Sans Mono", monospace; color: inherit; }
.cinductor code { background: none !important; padding: 0 !important; }
.cinductor pre { background: var(--panel); border: 1px solid var(--rule); border-radius: 6px; padding: 10px 12px;
  margin: 6px 0; overflow: auto; max-height: 520px; white-space: pre; }
.cinductor .soft { color: var(--soft); }
.cinductor ul.facts { display: flex; flex-wrap: wrap; gap: 8px; list-style: none; padding: 0 !important;
  margin: 12px 0 0 !important; }
.cinductor .facts li { background: var(--panel); border: 1px solid var(--rule); border-radius: 6px;
  padding: 6px 12px; margin: 0; }
.cinductor .facts b { display: block; font-size: 16px; }
.cinductor .facts span { color: var(--soft); font-size: 12px; }
.cinductor .listing { background: var(--panel); border: 1px solid var(--rule); border-radius: 6px; overflow-x: auto;
  padding: 6px 0; }
.cinductor .row { display: flex; align-items: baseline; padding: 0 12px 0 0; border-left: 3px solid transparent; }
.cinductor .row.used { border-left-color: var(--accent); }
.cinductor .row.broken { border-left-color: var(--warn); background: var(--warn-back); }
.cinductor .row:target { outline: 2px solid var(--accent); outline-offset: -2px; }
.cinductor .number { flex: 0 0 52px; text-align: right; padding-right: 14px; color: var(--soft);
  font: 12px/1.5 ui-monospace, "DejaVu Sans Mono", monospace; user-select: none; }
.cinductor .took { flex: 0 0 64px; position: relative; align-self: stretch; margin-right: 10px; text-align: right; padding-right: 4px;
  color: var(--soft); font-size: 11px; line-height: 18px; }
.cinductor .bar { position: absolute; right: 0; top: 2px; bottom: 2px; background: var(--accent); opacity: 0.25; border-radius: 2px; }
.cinductor .row code { white-space: pre; flex: 1 0 auto; padding-right: 20px; }
.cinductor .chips { position: sticky; right: 8px; display: flex; gap: 4px; background: inherit; }
.cinductor .chip { display: inline-block; border-radius: 4px; padding: 0 6px; font: 600 11px/1.55 ui-monospace,
  "DejaVu Sans Mono", monospace; color: var(--chip); background: var(--accent); }
.cinductor a.chip { color: var(--chip) !important; }
.cinductor .mark { border: 1px solid var(--rule); border-radius: 4px; padding: 0 6px; color: var(--soft); font-size: 11px; background: none; }
.cinductor .chip:hover { text-decoration: none; filter: brightness(1.15); }
.cinductor .note { margin: 0; padding: 2px 12px 4px 66px; font-size: 12.5px; color: var(--soft); white-space: normal; }
.cinductor .note.chips { position: static; flex-wrap: wrap; }
@media (max-width: 640px) {
.cinductor .row { flex-wrap: wrap; }
.cinductor .row code { flex: 0 0 auto; max-width: calc(100% - 52px); white-space: pre-wrap; overflow-wrap: anywhere; }
.cinductor .row .took { flex-basis: 52px; }
.cinductor .row .took + code { max-width: calc(100% - 114px); }
.cinductor .row .chips { position: static; flex: 1 0 100%; padding: 0 0 2px 66px; }
.cinductor .row .chips:empty { display: none; }
.cinductor .pair > div { overflow-x: auto; } .cinductor svg { min-width: 520px; } }
.cinductor .note.break { background: var(--warn-back); color: var(--ink); border-left: 3px solid var(--warn);
  padding-left: 63px; }
.cinductor .hint { color: var(--good); }
.cinductor .key { color: var(--key); } .cinductor .string { color: var(--string); }
.cinductor .comment { color: var(--comment); font-style: italic; }
.cinductor .wide { overflow-x: auto; }
.cinductor table { border-collapse: collapse; width: 100%; table-layout: auto !important; margin: 4px 0; font-size: 13px; color: inherit; }
.cinductor th, .cinductor td { text-align: right; padding: 4px 10px; border-bottom: 1px solid var(--rule);
  white-space: nowrap; background: none; }
.cinductor th { color: var(--soft); font-weight: 600; font-size: 12px; }
.cinductor th:nth-child(-n+2), .cinductor td:nth-child(-n+2) { text-align: left; }
.cinductor .kernel { border: 1px solid var(--rule); border-radius: 6px; padding: 8px 12px; margin: 8px 0; }
.cinductor tr:target td { background: var(--warn-back); }
.cinductor .texts { display: flex; flex-wrap: wrap; gap: 0 18px; }
.cinductor .texts details { min-width: 0; } .cinductor .texts details[open] { flex: 1 0 100%; }
.cinductor summary { cursor: pointer; color: var(--accent); font-size: 13px; margin: 2px 0; }
.cinductor .pair { display: flex; flex-wrap: wrap; gap: 20px; }
.cinductor .pair > div { flex: 1 1 460px; min-width: 0; }
.cinductor svg { display: block; width: 100%; height: auto; max-width: 720px; }
.cinductor svg text { fill: var(--soft); font: 11px system-ui, sans-serif; }
.cinductor svg text { paint-order: stroke; stroke: var(--page); stroke-width: 3px; stroke-linejoin: round; }
.cinductor svg text.strong { fill: var(--ink); font-weight: 600; }
.cinductor svg .axis { stroke: var(--rule); stroke-width: 1; fill: none; }
.cinductor svg .roof { stroke: var(--ink); stroke-width: 1.5; fill: none; }
.cinductor svg .area { fill: var(--accent); fill-opacity: 0.18; stroke: var(--accent); stroke-width: 1.5; }
.cinductor svg .peak { stroke: var(--bad); stroke-width: 1.5; stroke-dasharray: 4 3; fill: none; }
.cinductor svg text.peak { fill: var(--bad); stroke: var(--page); stroke-width: 3px; stroke-dasharray: none; font-weight: 600; }
.cinductor svg .dot { stroke: var(--page); stroke-width: 1.5; }
.cinductor .tabs > input { position: absolute; opacity: 0; pointer-events: none; }
.cinductor .tabs > label { display: inline-block; padding: 4px 12px; margin: 0 2px 0 0; cursor: pointer;
  border: 1px solid var(--rule); border-bottom: none; border-radius: 6px 6px 0 0; color: var(--soft);
  font-size: 13px; }
.cinductor .tabs > pre { display: none; margin-top: 0; border-top-left-radius: 0; }
.cinductor .tabs > input:focus-visible + label { outline: 2px solid var(--accent); }
.cinductor ul.plain { margin: 4px 0; padding-left: 20px; }
"""
# The visible tab: one rule for each number of a tab.
TABS = "".join(
    f".cinductor .tabs > input:nth-of-type({k}):checked ~ pre:nth-of-type({k}) {{ display: block; }}\n"
    f".cinductor .tabs > input:nth-of-type({k}):checked + label {{ color: var(--ink); background: var(--panel); "
    f"font-weight: 600; }}\n"
    for k in range(1, 10)
)
CHIPS = "".join(
    f".cinductor .chip.k{k} {{ background: var(--k{k}); }} .cinductor svg .k{k} {{ fill: var(--k{k}); }}\n"
    for k in range(8)
)
SHEET = STYLE + TABS + CHIPS
