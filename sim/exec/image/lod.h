// Level of detail: which mipmap levels a lane reads, and how far apart the samples of an anisotropic fetch lie.
#pragma once

#include "sim/exec/image/sample.h"

namespace gridloom::exec {

struct LevelChoice {
  IntLanes level;     ///< the finer one
  FloatLanes weight;  ///< of the next coarser one, in steps of 1/256
};

/// From the instruction's explicit level (in levels, before bias and clamps).
void ChooseExplicit(const TextureObject& texture, const Sampler& sampler, const TextureFetch& fetch, LevelChoice& out);
/// From levels of detail computed before.
void ChooseLevels(const TextureObject& texture, const Sampler& sampler, const FloatLanes& lod, LevelChoice& out);

/// Footprint of a pixel by its derivatives: lod = log2 of its longer axis in texels, divided by the number of samples
/// along it.
struct Footprint {
  FloatLanes lod;
  IntLanes samples;    ///< 1 without anisotropic filtering
  FloatLanes step[2];  ///< the longer axis, in the units of the coordinates; 2D only
};
void FindFootprint(const TextureObject& texture, const Sampler& sampler, const TextureFetch& fetch, Footprint& out);

}  // namespace gridloom::exec
