// Products on the host, by its BLAS, in place of the kernels of device/product.cu.
#pragma once

#include <cstddef>
#include <span>

#include "sim/exec/device_memory.h"

namespace gridloom::blas {

/// `params`: a Product, as its kernel gets it. False: nothing was done, and the kernel must run: no library is there,
/// the types are ones that only the kernel has, or not all memory that the product names is plain memory of the device.
/// Throws bad_alloc when it has begun and the host has no memory left.
bool MultiplyOnHost(std::span<const std::byte> params, const exec::DeviceMemory& memory, unsigned threads);

}  // namespace gridloom::blas
