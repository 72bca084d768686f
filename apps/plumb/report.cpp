// plumb report: the HTML page of a study's results.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>

#include "plumb/report/html.h"
#include "verb.h"

namespace plumb::app {

void add_report(CLI::App& app, Globals& globals) {
  auto directory = std::make_shared<std::string>();
  CLI::App* verb = add_verb(app, globals, "report", "Write DIR/report.html from DIR/results.json",
                            "plumb report runs/layer-norm", [directory] {
                              write_report(*directory);
                              const std::string page = (std::filesystem::path(*directory) / "report.html").string();
                              fmt::print("{}\n", page);
                            });
  verb->add_option("DIR", *directory, "Directory of the study")->type_name("DIR")->required();
}

}  // namespace plumb::app
