// The page around the report that `plumb watch` serves: reloads the report when a run has new content.
#pragma once

#include <string_view>

namespace plumb::app {

/// Requests /revision every two seconds and reloads /report in its frame when the answer changes. A report keeps its
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
p { margin: 0; padding: 6px 16px; background: #b3261e; color: #fff; }
</style>
</head>
<body>
<p id="notice" role="status" hidden></p>
<iframe id="report" title="Report" src="/report"></iframe>
<script>
const frame = document.getElementById("report");
const notice = document.getElementById("notice");
let known = null;
frame.addEventListener("load", () => { document.title = frame.contentDocument?.title || document.title; });
async function look() {
  try {
    const answer = await fetch("/revision", { cache: "no-store" });
    const revision = await answer.text();
    if (!answer.ok) throw new Error(revision);
    if (known !== null && known !== revision) frame.contentWindow.location.reload();
    known = revision;
    notice.hidden = true;
  } catch (error) {
    notice.textContent = error instanceof TypeError ? "plumb watch has ended; this is what it showed last." : error.message;
    notice.hidden = false;
  }
}
look();
setInterval(look, 2000);
</script>
</body>
</html>
)page";

}  // namespace plumb::app
