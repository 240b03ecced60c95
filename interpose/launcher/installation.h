// Where the parts of Gridloom are, relative to this tool: in the build tree or in an installed tree that may be moved.
//
//   part                       build tree                    installed
//   gridloom                   build/                        bin/
//   libgridloom.so             build/                        lib/gridloom/
//   libgridloom-compiler.so    build/                        lib/gridloom/
//   gridloom-compile           build/                        lib/gridloom/
//   libcuda.so (a link)        build/driver/                 lib/gridloom/
//   samples                    build/apps/                   lib/gridloom/samples/
//   device files               build/configs/devices/        share/gridloom/devices/
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

namespace gridloom::launcher {

inline constexpr std::string_view kShim = "libgridloom.so";
inline constexpr std::string_view kCompiler = "libgridloom-compiler.so";
inline constexpr std::string_view kCompileService = "gridloom-compile";

/// Folder of this executable.
std::filesystem::path ToolDirectory();

/// A library of Gridloom's, or nothing when it is in neither place.
std::optional<std::filesystem::path> FindLibrary(std::string_view name);

/// Folder with links named libcuda.so and libcuda.so.1 to the shim, for programs that search for the driver by name
/// instead of being content with a preloaded one.
std::optional<std::filesystem::path> FindDriverLinks();

/// The program of that sample (`gridloom demo`), or nothing when it was not built or did not come along.
std::optional<std::filesystem::path> FindSample(std::string_view name);

/// Folder of compiled kernels: GRIDLOOM_CACHE_DIR, else the runtime's default. Empty when there is none (`off`, or no
/// home).
std::filesystem::path CacheDirectory();

}  // namespace gridloom::launcher
