// What figures and sentences call an arm of a study.
#pragma once

#include <string>

namespace plumb {

/// The name of an arm in figures: its residual scheme has its title, "Post-LN" for "post-ln"; tensor2tensor's strings,
/// such as "n/da", have none.
std::string display_name(const std::string& arm);

}  // namespace plumb
