#!/usr/bin/env python3
"""The report's page in a browser. usage: page_test.py GRIDLOOM PROGRAM

Opens the page in headless Chromium, without a network, at three widths: every block is drawn, nothing is wider than the window, no script
fails; a click on a column sorts, another replay can be chosen, the pointer over charts tells values, light and dark can be changed.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

# Acts as a reader would and puts what it sees into the page's title.
READER = """<script>
window.addEventListener('error', (event) => { if (!event.message.startsWith('ResizeObserver')) document.body.dataset.error = event.message; });
setTimeout(() => {
  const head = [...document.querySelectorAll('th')].find((th) => th.querySelector('.name').textContent === 'cycles');
  const column = [...head.parentNode.children].indexOf(head);
  const cells = () => [...head.closest('table').querySelectorAll('tbody tr')].map((row) => Number(row.children[column].textContent.replaceAll(',', '')));
  head.click();
  const falling = cells();
  head.click();
  const rising = cells();
  const choice = document.querySelector('main select');
  choice.selectedIndex = 1;
  choice.dispatchEvent(new Event('change'));
  setTimeout(() => {
    const tips = [];
    for (const svg of document.querySelectorAll('main svg')) {
      const box = svg.getBoundingClientRect();
      for (const target of [svg, ...svg.querySelectorAll('rect')]) {
        target.dispatchEvent(new PointerEvent('pointermove', {clientX: box.left + box.width / 2, clientY: box.top + 20}));
      }
      tips.push(document.getElementById('tip').textContent.length);
    }
    document.getElementById('theme').click();
    document.title = 'SEEN' + JSON.stringify({falling, rising, tips, error: document.body.dataset.error || '', theme: document.documentElement.dataset.theme,
      wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
      charts: [...document.querySelectorAll('main svg')].map((svg) => svg.querySelectorAll('path, rect').length), tables: document.querySelectorAll('table').length}) + 'END';
  }, 3000);
}, 800);
</script></body>"""


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def look(browser, folder, width):
    dom = run(browser, "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/browser", "--virtual-time-budget=12000",
              f"--window-size={width},900", "--dump-dom", f"file://{folder}/reader.html")
    seen = re.search(r"<title>SEEN(.*?)END</title>", dom)
    assert seen, "the page's script did not come to its end"
    return json.loads(seen.group(1))


def main():
    gridloom, program = sys.argv[1:]
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        print("skipped: chromium is not installed")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        trace, report = os.path.join(folder, "program.gltrace"), os.path.join(folder, "report")
        run(gridloom, "run", "--trace", trace, "--", program)
        run(gridloom, "replay", "--device", "gtx480,v100", "--policy", "serial,leftover", "--report", report, trace)
        with open(os.path.join(report, "report.html"), encoding="utf-8") as file:
            page = file.read()
        with open(os.path.join(folder, "reader.html"), "w", encoding="utf-8") as file:
            file.write(page.replace("</body>", READER))
        for width in 1400, 800, 500:
            seen = look(browser, folder, width)
            assert seen["error"] == "", seen
            assert seen["wide"] <= 0, f"at {width} pixels the page is {seen['wide']} pixels too wide"
            assert seen["rising"] == sorted(seen["rising"]) and seen["falling"] == seen["rising"][::-1] and len(seen["rising"]) == 4, seen
            assert len(seen["charts"]) >= 8 and min(seen["charts"]) > 0, seen
            assert min(seen["tips"]) > 0, seen
            assert seen["theme"] in ("light", "dark"), seen
        print(f"{len(seen['charts'])} charts and {seen['tables']} tables at three widths")


main()
