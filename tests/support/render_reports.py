"""Opens the reports of all programs of tests/programs in headless Chromium: `make reports`.

    python tests/support/render_reports.py [FOLDER [PROGRAM ...]]

Writes each report into the folder. A page in the browser loads the reports one by one and clicks every control.
Prints which reports raise a script error, are wider than the window, or have a kernel without a source line; the
exit status is then 1. Without Chromium, nothing is rendered and a line says so.
"""

import html
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import warnings
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import folders  # noqa: F401
import numpy as np
import programs

import cinductor

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
MAX_SECONDS = 300
# Each report is loaded into a frame of this page's origin; errors are caught before the report's own scripts run.
DRIVER = """<!doctype html><meta charset="utf-8"><iframe id="frame" width="1100" height="900"></iframe><script>
const names = %s, found = {};
const catcher = '<script>onerror = (m, s, l) => parent.failed(m + " at line " + l);' +
    'onunhandledrejection = e => parent.failed(String(e.reason));' +
    'console.error = (...m) => parent.failed(m.join(" "));<\\/script>';
let name = "";
window.failed = text => (found[name] = found[name] || []).push(text);
const frame = document.getElementById("frame");
function load(text) {
    return new Promise(done => { frame.onload = done; frame.srcdoc = text.replace(/<head>|<html[^>]*>/, m => m + catcher); });
}
async function all() {
    for (name of names) {
        await load(await (await fetch(name + ".html")).text());
        const page = frame.contentDocument;
        for (const one of page.querySelectorAll("button, summary, label, input")) one.click();
        for (const one of page.querySelectorAll("a[href^='#']"))
            if (!page.getElementById(decodeURIComponent(one.getAttribute("href").slice(1)))) failed("nothing is at " + one.getAttribute("href"));
        await new Promise(done => setTimeout(done, 20));
        if (page.body.innerText.length < 200) failed("the page is empty");
        if (page.documentElement.scrollWidth > 1120) failed("the page is " + page.documentElement.scrollWidth + " wide");
    }
    await fetch("/done", {method: "POST", body: JSON.stringify(found)});
}
all().catch(error => { failed(String(error)); fetch("/done", {method: "POST", body: JSON.stringify(found)}); });
</script>"""


def write_reports(folder, chosen):
    """Write a page for each program. Return the faults of the reports themselves, by name."""
    wrong = {}
    for name, program in chosen.items():
        arguments = program.make(program.sizes[0], np.random.default_rng(0))
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            report = cinductor.explain(program.function, *arguments)
        report.save(folder / f"{name}.html")
        bare = [cost.name for cost in report.costs if not cost.places]
        if bare:
            wrong[name] = [f"kernels without a line: {', '.join(bare)}"]
    return wrong


def serve(folder):
    """Serve the folder. Return the server, an event that the page's answer sets, and the list of answers."""
    answered, answers = threading.Event(), []

    class Handler(SimpleHTTPRequestHandler):
        def __init__(self, *args):
            super().__init__(*args, directory=str(folder))

        def do_POST(self):
            answers.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()
            answered.set()

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, answered, answers


def render(browser, folder, names):
    """Load all pages in the browser. Return the faults of the pages, by name."""
    (folder / "all.html").write_text(DRIVER % json.dumps(names))
    server, answered, answers = serve(folder)
    url = f"http://127.0.0.1:{server.server_address[1]}/all.html"
    with tempfile.TemporaryDirectory() as profile:
        flags = ["--headless", "--disable-gpu", f"--user-data-dir={profile}", "--remote-debugging-port=0"]
        flags += ["--no-sandbox"] if os.getuid() == 0 else []
        process = subprocess.Popen([browser, *flags, url], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        is_answered = answered.wait(MAX_SECONDS)
        process.terminate()
        process.wait()
        server.shutdown()
    return answers[0] if is_answered else {"all": [f"no answer after {MAX_SECONDS} s"]}


def main(arguments):
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        print(f"no browser is found ({', '.join(BROWSERS)}): nothing is rendered")
        return 0
    folder = Path(arguments[0] if arguments else "build/reports")
    folder.mkdir(parents=True, exist_ok=True)
    known = programs.load()
    chosen = {name: known[name] for name in arguments[1:] or known}
    wrong = write_reports(folder, chosen)
    for name, texts in render(browser, folder, list(chosen)).items():
        wrong.setdefault(name, []).extend(texts)
    for name, texts in wrong.items():
        print(*(f"{name}: {html.unescape(text)}" for text in texts), sep="\n")
    print(f"{len(chosen)} reports in {folder}, {len(wrong)} with something wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
