// Which PTX of an image a device runs, and what to say when there is none.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rewriter/image/image_set.h"

namespace gridloom::image {

/// The PTX of a container that suits the device best: the highest architecture it can run; an exact one (`a`) before a
/// family one (`f`) before a plain one. Null when there is none.
const Entry* SelectPtx(const Container& container, ComputeCapability device);

/// The PTX texts that make up the module of an image for a device: one text, or, for an -rdc program, one per part, to
/// be linked together. A part with machine code for the device and PTX only for a newer one gives that PTX. An error
/// that says which machine code and which PTX there is instead, and how to rebuild.
Result<std::vector<const Entry*>> SelectPtx(const ImageSet& set, ComputeCapability device);

/// The same for an object or library that is to be linked with others (cuLinkAddData, nvJitLink): it may consist of
/// nothing but parts that give the PTX of a newer device, as libcudadevrt.a does.
Result<std::vector<const Entry*>> SelectPartsToLink(const ImageSet& set, ComputeCapability device);

/// The machine code of a container that a driver with that device takes: of the highest architecture, an exact one
/// first. Null when there is none.
const Entry* SelectCode(const Container& container, ComputeCapability device);

/// Whether PTX of the image runs on that device itself, not in the place of other PTX.
bool HasPtxFor(const ImageSet& set, ComputeCapability device);

/// Whether a driver with that device would load it without PTX: there is machine code that such a device runs.
bool HasMachineCode(const ImageSet& set, ComputeCapability device);

/// A compute capability on which every container that has PTX can run: `preferred` if possible, else the lowest one
/// above it, else the highest one below. Nothing when no device fits all of them.
std::optional<ComputeCapability> FittingCapability(const ImageSet& set, ComputeCapability preferred);

/// The compute capabilities for which there is a generic device, ascending.
std::span<const ComputeCapability> KnownCapabilities();

}  // namespace gridloom::image
