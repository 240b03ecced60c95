// Transforms on the host, by FFTW, in place of the kernels of device/fft.cu.
#pragma once

#include <cstddef>
#include <span>

#include "interpose/fft/device/fft.h"
#include "sim/exec/device_memory.h"

namespace gridloom::fft {

/// Whether transforms of f32, or f64 (`wide`), are the host's: FFTW is there and nobody wants to see grids.
bool HostTransforms(bool wide);

/// Whether a kernel may access all memory of the transform. The host uses nothing else.
bool IsThere(const Whole& whole, const exec::DeviceMemory& memory);

/// `params`: a Whole, as its kernel gets it. False: nothing was done, since not all memory that it names can be
/// accessed. Throws bad_alloc when the host has no memory left. Results depend on sizes, layouts, the alignment of the
/// data to 16 bytes and on `threads`, and on nothing else.
bool TransformOnHost(std::span<const std::byte> params, const exec::DeviceMemory& memory, unsigned threads);

}  // namespace gridloom::fft
