// The cubins in a file: itself, or those of a program, library or fat binary.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "rewriter/image/image_set.h"

namespace gridloom::machine {

/// False when the file cannot be read. `wanted`: the architecture, 0: all.
inline bool VisitCubins(const std::string& path, unsigned wanted,
                        const std::function<void(const std::string&)>& visit) {
  const auto images = image::ReadImageFile(path);
  if (!images.ok()) return false;
  for (const image::Container& container : images->containers) {
    for (const image::Entry& entry : container.entries) {
      if (entry.kind != image::EntryKind::kCubin || entry.arch.scope != image::ArchScope::kForward) continue;
      if (wanted != 0 && entry.arch.capability.sm() != wanted) continue;
      if (const auto bytes = entry.Read(); bytes.ok()) visit(*bytes);
    }
  }
  return true;
}

}  // namespace gridloom::machine
