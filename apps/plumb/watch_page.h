// The page around the report that `plumb watch` serves: reloads the report when a run has new content.
#pragma once

#include <string_view>

namespace plumb::app {

/// Requests "revision" every two seconds and reloads "report" in its frame when the answer changes. A report keeps its
/// zoom.
inline constexpr std::string_view kWatchPage = R"page(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>plumb watch</title>
<style>
html, body { margin: 0; height: 100%; }
body { display: flex; flex-direction: column; font: 14px system-ui, sans-serif; }
iframe { flex: 1; border: 0; width: 100%; }
h1 { position: absolute; clip-path: inset(50%); }
main { flex: 1; display: flex; }
p { margin: 0; padding: 6px 16px; }
p.trouble { background: #b3261e; color: #fff; }
</style>
</head>
<body>
<p id="notice" role="status">Loading the report …</p>
<main>
<h1>plumb watch</h1>
<iframe id="report" title="Report" src="report"></iframe>
</main>
<script>
const frame = document.getElementById("report");
const notice = document.getElementById("notice");
let known = null;
function tell(text, trouble) {
  notice.textContent = text;
  notice.classList.toggle("trouble", trouble);
  notice.hidden = !text;
}
// A frame is printed cut off, so its own page is printed.
function print(event) {
  if (event.key !== "p" || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  frame.contentWindow.print();
}
addEventListener("keydown", print);
let loaded = false;
frame.addEventListener("load", () => {
  loaded = true;
  tell("", false);
  document.title = frame.contentDocument?.title || document.title;
  frame.contentWindow.addEventListener("keydown", print);
});
async function look() {
  try {
    const answer = await fetch("revision", { cache: "no-store" });
    const revision = await answer.text();
    if (!answer.ok) throw new Error(revision);
    if (known !== null && known !== revision) frame.contentWindow.location.reload();
    known = revision;
    if (loaded) tell("", false);
  } catch (error) {
    tell(error instanceof TypeError ? "plumb watch has ended; this is what it showed last." : error.message, true);
  }
}
look();
setInterval(look, 2000);
</script>
</body>
</html>
)page";

/// In place of a report before the first run has begun.
inline constexpr std::string_view kNoRunsPage = R"page(<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Waiting for a run</title>
<p style="font: 16px system-ui, sans-serif; margin: 2em">No run has begun yet. This page shows it when it has.</p>
)page";

}  // namespace plumb::app
