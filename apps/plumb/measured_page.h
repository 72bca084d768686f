// What `plumb probe` and `plumb spectrum` show: a page with --html, and its tables and sentences on the terminal.
#pragma once

#include <optional>
#include <string>

#include "plumb/analysis/curvature/spectrum_json.h"
#include "plumb/analysis/initialization.h"
#include "plumb/analysis/probe.h"
#include "plumb/report/results.h"
#include "subject.h"
#include "verb.h"

namespace plumb::app {

/// Adds --html FILE.
void add_html_option(CLI::App& verb, std::string& file);

/// Gradients and activations by layer beside the theory's lines; gains, first steps and curvature if they were
/// measured.
Results page_of(const ProbeReport& report, const std::optional<InitializationReport>& more, const Subject& subject);

/// The density and the extremes of the Hessian, or those of its diagonal blocks by layer.
Results page_of(const SpectrumReport& report, const Subject& subject);

/// The page's tables, then its sentences.
std::string text_of(const Results& page);

/// Writes such a page, unless `file` is empty; says where on standard error.
void write_page(const std::string& file, const Results& page);

}  // namespace plumb::app
