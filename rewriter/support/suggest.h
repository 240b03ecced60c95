// "Did you mean": the known name nearest to a misspelt one.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace gridloom {

/// The candidate with the smallest edit distance to `name`, or an empty view when none is near enough to be a typing
/// mistake (more than a third of the name would have to change).
std::string_view NearestName(std::string_view name, std::span<const std::string_view> candidates);

/// The end of a message about an unknown name: "; did you mean 'NEAREST'?", or `otherwise` when none is near enough.
std::string DidYouMean(std::string_view name, std::span<const std::string_view> candidates,
                       std::string_view otherwise = {});

}  // namespace gridloom
