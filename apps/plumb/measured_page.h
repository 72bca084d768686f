// The page of `plumb probe --html` and `plumb spectrum --html`: what the tables say, as figures, in one file.
#pragma once

#include <optional>
#include <string>

#include "plumb/analysis/curvature/spectrum_json.h"
#include "plumb/analysis/initialization.h"
#include "plumb/analysis/probe.h"
#include "subject.h"
#include "verb.h"

namespace plumb::app {

/// Adds --html FILE.
void add_html_option(CLI::App& verb, std::string& file);

/// Gradients and activations by layer beside the theory's lines; gains, first steps and curvature if they were
/// measured. A document of the schema plumb.study/1.
Json page_of(const ProbeReport& report, const std::optional<InitializationReport>& more, const Subject& subject);

/// The density and the extremes of the Hessian, or those of its diagonal blocks by layer.
Json page_of(const SpectrumReport& report, const Subject& subject);

/// Writes the page of such a document, unless `file` is empty; says where on standard error.
void write_page(const std::string& file, const Json& document);

}  // namespace plumb::app
