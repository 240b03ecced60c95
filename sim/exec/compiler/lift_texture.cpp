// tex, tld4, txq, suld, sust, sured, suq and istypep (PTX ISA, 9.7.10 and 9.7.11) as calls of runtime helpers, which
// know the objects. Operands are handed over in the order image_immediates.h gives.
#include <array>
#include <optional>

#include "sim/exec/compiler/lift_parts.h"
#include "sim/exec/compiler/lifter.h"
#include "sim/exec/contract/image_immediates.h"

namespace gridloom::exec {

namespace {

std::optional<ImageGeometry> GeometryOf(const Instruction& inst) {
  static constexpr std::pair<Mod, ImageGeometry> kGeometries[] = {
      {Mod::kDim1d, ImageGeometry::k1d},   {Mod::kDim2d, ImageGeometry::k2d}, {Mod::kDim3d, ImageGeometry::k3d},
      {Mod::kA1d, ImageGeometry::kA1d},    {Mod::kA2d, ImageGeometry::kA2d},  {Mod::kCube, ImageGeometry::kCube},
      {Mod::kAcube, ImageGeometry::kAcube}};
  for (const auto& [mod, geometry] : kGeometries) {
    if (inst.Has(mod)) return geometry;
  }
  return std::nullopt;
}

/// Attributes txq and suq ask for, by their text.
std::optional<ImageQuery> QueryOf(const Instruction& inst) {
  static constexpr std::pair<std::string_view, ImageQuery> kQueries[] = {
      {"width", ImageQuery::kWidth},
      {"height", ImageQuery::kHeight},
      {"depth", ImageQuery::kDepth},
      {"channel_data_type", ImageQuery::kChannelDataType},
      {"channel_order", ImageQuery::kChannelOrder},
      {"normalized_coords", ImageQuery::kNormalizedCoords},
      {"array_size", ImageQuery::kArraySize},
      {"num_mipmap_levels", ImageQuery::kMipmapLevels},
      {"num_mip_levels", ImageQuery::kMipmapLevels},
      {"num_samples", ImageQuery::kSamples},
      {"force_unnormalized_coords", ImageQuery::kForceUnnormalizedCoords},
      {"filter_mode", ImageQuery::kFilterMode},
      {"addr_mode_0", ImageQuery::kAddressMode0},
      {"addr_mode_1", ImageQuery::kAddressMode1},
      {"addr_mode_2", ImageQuery::kAddressMode2},
      {"memory_layout", ImageQuery::kMemoryLayout}};
  for (const ptx::Modifier& modifier : inst.modifiers) {
    for (const auto& [text, query] : kQueries) {
      if (modifier.text == text) return query;
    }
  }
  return std::nullopt;
}

/// tld4's channel: its first modifier.
std::optional<std::uint8_t> ComponentOf(const Instruction& inst) {
  const std::string_view text = inst.modifiers.empty() ? "" : inst.modifiers.front().text;
  const std::size_t component = text.size() == 1 ? std::string_view("rgba").find(text) : std::string_view::npos;
  if (component == std::string_view::npos) return std::nullopt;
  return static_cast<std::uint8_t>(component);
}

/// Settings in the initialiser of a .samplerref variable (PTX ISA, 5.3); what is not set is wrapped, nearest,
/// normalised.
std::uint8_t SettingsOf(const ptx::Variable& sampler) {
  std::array<unsigned, 3> modes{};
  bool linear = false, unnormalized = false;
  for (const ptx::Initializer& element : sampler.initializer) {
    const auto* operand = std::get_if<Operand>(&element.value);
    if (!operand) continue;
    const std::string_view value = operand->text;
    const bool is_true = value == "true" || (operand->kind == OperandKind::kInt && operand->int_literal.value != 0);
    if (element.field == "filter_mode") linear = value == "linear";
    if (element.field == "force_unnormalized_coords") unnormalized = is_true;
    if (element.field.starts_with("addr_mode_") && element.field.size() == 11) {
      const unsigned mode = value == "mirror"            ? 2
                            : value == "clamp_to_border" ? 3
                            : value.starts_with("clamp") ? 1
                                                         : 0;  // AddressMode
      const auto axis = static_cast<std::size_t>(element.field.back() - '0');
      if (axis < modes.size()) modes[axis] = mode;
    }
  }
  return SamplerSettings(modes[0], modes[1], modes[2], linear, unnormalized);
}

/// txq of a sampler with an initialiser: { wrap, mirror, clamp_ogl, clamp_to_edge, clamp_to_border } for address modes.
std::uint32_t SamplerQuery(std::uint8_t settings, ImageQuery query) {
  static constexpr std::uint32_t kModes[] = {0, 3, 1, 4};
  switch (query) {
    case ImageQuery::kFilterMode: return settings >> 6 & 1;
    case ImageQuery::kForceUnnormalizedCoords: return settings >> 7 & 1;
    case ImageQuery::kAddressMode0: return kModes[settings & 3];
    case ImageQuery::kAddressMode1: return kModes[settings >> 2 & 3];
    case ImageQuery::kAddressMode2: return kModes[settings >> 4 & 3];
    default: return 0;
  }
}

// The operand that names a texture, sampler or surface: a handle in a register or parameter, or the address of the
// variable that holds it.
Value* ImageHandle(Lifter& l, const Operand& operand) {
  if (operand.kind == OperandKind::kSymbol && operand.variable) {
    if (const auto it = l.frame.kernel_params.find(operand.variable); it != l.frame.kernel_params.end())
      return l.b.LoadParam(l.b.getInt64Ty(), l.b.getInt64(it->second));
    if (const auto it = l.frame.scalar_params.find(operand.variable); it != l.frame.scalar_params.end())
      return l.b.CreateLoad(l.b.getInt64Ty(), it->second);
  }
  return l.Read(operand, ScalarType::kB64);
}

/// Appends `count` coordinates of a type, after the layer if there is one.
void ReadCoordinates(Lifter& l, const Operand& operand, bool layered, unsigned count, ScalarType type,
                     llvm::SmallVectorImpl<Value*>& out) {
  const std::vector<Operand> components = l.Components(operand);
  if (components.size() < count + (layered ? 1 : 0)) l.RefuseInstruction("has too few coordinates");
  std::size_t at = 0;
  if (layered) out.push_back(l.Read(components[at++], ScalarType::kU32));
  for (unsigned i = 0; i < count; ++i) out.push_back(l.Read(components[at++], type));
}

/// Result of a texture fetch: four words, or their halves. `destination` may be a pair with a predicate (always
/// resident).
void WriteTexels(Lifter& l, const Operand& destination, Value* texels, ScalarType type) {
  const bool pair = destination.kind == OperandKind::kPair;
  const std::vector<Operand> components = l.Components(pair ? destination.elements[0] : destination);
  std::vector<Value*> words;
  for (unsigned i = 0; i < 4; ++i) words.push_back(l.b.CreateExtractValue(texels, i));
  if (type == ScalarType::kF16 || type == ScalarType::kF16x2) {
    for (Value*& word : words) word = l.emit.FloatToHalf(l.b.CreateBitCast(word, l.b.getFloatTy()));
  }
  if (type == ScalarType::kF16x2) {
    words = {l.JoinLanes({words[0], words[1]}, l.b.getInt32Ty()), l.JoinLanes({words[2], words[3]}, l.b.getInt32Ty())};
  }
  if (components.size() != words.size()) l.RefuseInstruction("has a destination of another width");
  for (std::size_t i = 0; i < words.size(); ++i) l.Write(components[i], words[i], type);
  if (pair) l.Write(destination.elements[1], l.b.getTrue(), ScalarType::kPred);
}

// [texture, {sampler,} coordinates]; the brackets are optional.
void ReadTextureOperands(Lifter& l, TextureImm& imm, ScalarType type, std::size_t& next,
                         llvm::SmallVectorImpl<Value*>& inputs) {
  std::vector<Operand> operands;
  if (l.Op(1).kind == OperandKind::kAddress) {
    operands = l.Op(1).address->base;
    operands.insert(operands.end(), l.Op(1).address->elements.begin(), l.Op(1).address->elements.end());
    next = 2;
  } else {
    operands = {l.Op(1), l.Op(2)};
    next = 3;
  }
  if (operands.size() < 2 || operands.size() > 3) l.RefuseInstruction("needs [texture, coordinates]");
  inputs.push_back(ImageHandle(l, operands[0]));
  if (operands.size() == 3) {
    const Operand& sampler = operands[1];
    if (sampler.kind == OperandKind::kSymbol && sampler.variable && sampler.variable->has_initializer) {
      imm.sampler = SamplerSource::kSettings;
      imm.settings = SettingsOf(*sampler.variable);
    } else {
      imm.sampler = SamplerSource::kOperand;
      inputs.push_back(ImageHandle(l, sampler));
    }
  }
  ReadCoordinates(l, operands.back(), IsLayered(imm.geometry), CoordinateCount(imm.geometry), type, inputs);
}

/// Where an instruction accesses an image is known to the runtime only. Whoever wants accesses to memory alone is not
/// told of images'.
void RecordImage(Lifter& l, Helper locate, AccessKind kind, std::size_t bytes, llvm::ArrayRef<Value*> inputs,
                 std::uint64_t imm) {
  if (l.b.record != Recording::kAll) return;
  l.b.RecordAccess(kind, Space::kGlobal, bytes, l.b.CallHelper(locate, {l.b.getInt64Ty()}, inputs, imm));
}

}  // namespace

// tex{.base,.level,.grad}.geom.v4.dtype.ctype d{|p}, [a, {b,} c] {, lod | dPdx, dPdy} {, e} {, f}
// tld4.comp.geom.v4.dtype.f32 d{|p}, [a, {b,} c] {, e} {, f}
template <>
void Lift<semantic::Texture>(Lifter& l, const Instruction& inst) {
  const bool gather = inst.opcode == Opcode::kTld4;
  const std::optional<ImageGeometry> geometry = GeometryOf(inst);
  const std::optional<std::uint8_t> component = ComponentOf(inst);
  if (!geometry || (gather && !component)) l.RefuseInstruction();  // multi-sample textures: there are none in CUDA
  const ScalarType type = inst.type(1);
  TextureImm imm{.geometry = *geometry, .float_coordinates = type == ScalarType::kF32};
  if (gather) imm.component = *component;
  if (inst.Has(Mod::kLevel)) imm.lod = LodMode::kLevel;
  if (inst.Has(Mod::kGrad)) imm.lod = LodMode::kGradient;
  const unsigned axes = CoordinateCount(*geometry);
  llvm::SmallVector<Value*, 16> inputs;
  std::size_t next = 0;
  ReadTextureOperands(l, imm, type, next, inputs);
  if (imm.lod == LodMode::kLevel) inputs.push_back(l.Read(l.Op(next++), type));
  if (imm.lod == LodMode::kGradient) {
    for (int i = 0; i < 2; ++i) ReadCoordinates(l, l.Op(next++), false, axes, ScalarType::kF32, inputs);
  }
  if (next < l.OpCount() && l.Op(next).kind == OperandKind::kVector) {
    imm.has_offset = true;
    ReadCoordinates(l, l.Op(next++), false, axes, ScalarType::kS32, inputs);
  }
  if (next < l.OpCount()) l.RefuseInstruction("compares depths, which is not supported");
  imm.gather = gather;
  RecordImage(l, Helper::kTextureAddress, AccessKind::kRead, 1, inputs, PackImm(imm));
  llvm::Type* word = l.b.getInt32Ty();
  Value* texels = l.b.CallHelper(gather ? Helper::kTextureGather : Helper::kTexture, {word, word, word, word}, inputs,
                                 PackImm(imm));
  WriteTexels(l, l.Op(0), texels, inst.type(0));
}

// txq{.level}.query.b32 d, [a] {, lod};  suq.query.b32 d, [a]
template <>
void Lift<semantic::ImageQuery>(Lifter& l, const Instruction& inst) {
  const std::optional<ImageQuery> query = QueryOf(inst);
  if (!query) l.RefuseInstruction();
  const ImageQueryImm imm{.query = *query, .surface = inst.opcode == Opcode::kSuq, .has_level = inst.Has(Mod::kLevel)};
  const Operand& name =
      l.Op(1).kind == OperandKind::kAddress && !l.Op(1).address->base.empty() ? l.Op(1).address->base[0] : l.Op(1);
  const bool is_sampler =
      name.variable && name.variable->type == ScalarType::kSamplerRef && name.variable->has_initializer;
  if (is_sampler)
    return l.Write(l.Op(0), l.b.getInt32(SamplerQuery(SettingsOf(*name.variable), *query)), ScalarType::kB32);
  llvm::SmallVector<Value*, 2> inputs{ImageHandle(l, name)};
  if (imm.has_level) inputs.push_back(l.Read(l.Op(2), ScalarType::kU32));
  l.Write(l.Op(0), l.b.CallHelper(Helper::kImageQuery, {l.b.getInt32Ty()}, inputs, PackImm(imm)), ScalarType::kB32);
}

template <>
void Lift<semantic::Istypep>(Lifter& l, const Instruction& inst) {
  const ImageQuery query = inst.type() == ScalarType::kSurfRef ? ImageQuery::kIsSurface : ImageQuery::kIsTexture;
  Value* found = l.b.CallHelper(Helper::kImageQuery, {l.b.getInt32Ty()}, {ImageHandle(l, l.Op(1))},
                                PackImm(ImageQueryImm{.query = query}));
  l.Write(l.Op(0), l.b.CreateICmpNE(found, l.b.getInt32(0)), ScalarType::kPred);
}

namespace {

SurfaceImm SurfaceImmOf(Lifter& l, const Instruction& inst, ScalarType type, std::size_t count) {
  const std::optional<ImageGeometry> geometry = GeometryOf(inst);
  if (!geometry || IsCube(*geometry) || type == ScalarType::kNone || count == 0 || count > 4) l.RefuseInstruction();
  SurfaceImm imm{.geometry = *geometry,
                 .bytes = static_cast<std::uint8_t>(ptx::BytesOf(type)),
                 .count = static_cast<std::uint8_t>(count)};
  if (inst.Has(Mod::kClamp)) imm.out_of_range = OutOfRange::kClamp;
  if (inst.Has(Mod::kZero)) imm.out_of_range = OutOfRange::kZero;
  imm.formatted = inst.Has(Mod::kP);
  return imm;
}

/// Inputs of a surface helper: [a, b] of the instruction.
void ReadSurfaceOperands(Lifter& l, const Operand& operand, const SurfaceImm& imm,
                         llvm::SmallVectorImpl<Value*>& inputs) {
  if (operand.kind != OperandKind::kAddress || operand.address->base.empty() || operand.address->elements.size() != 1) {
    l.RefuseInstruction("needs [surface, coordinates]");
  }
  inputs.push_back(ImageHandle(l, operand.address->base[0]));
  ReadCoordinates(l, operand.address->elements[0], IsLayered(imm.geometry), CoordinateCount(imm.geometry),
                  ScalarType::kS32, inputs);
}

}  // namespace

// suld.b.geom{.cop}.vec.dtype.clamp d, [a, b];  sust.b or .p  [a, b], c
template <>
void Lift<semantic::Surface>(Lifter& l, const Instruction& inst) {
  const bool load = inst.opcode == Opcode::kSuld;
  const ScalarType type = inst.type();
  const std::vector<Operand> values = l.Components(l.Op(load ? 0 : 1));
  const SurfaceImm imm = SurfaceImmOf(l, inst, type, values.size());
  llvm::SmallVector<Value*, 8> inputs;
  ReadSurfaceOperands(l, l.Op(load ? 1 : 0), imm, inputs);
  const std::size_t bytes = imm.formatted ? 1 : std::size_t{imm.bytes} * imm.count;
  RecordImage(l, Helper::kSurfaceAddress, load ? AccessKind::kRead : AccessKind::kWrite, bytes, inputs, PackImm(imm));
  if (!load) {
    for (const Operand& value : values) inputs.push_back(l.AsInt(l.Read(value, type)));
    l.b.CallHelper(Helper::kSurfaceStore, {}, inputs, PackImm(imm));
    return;
  }
  const llvm::SmallVector<llvm::Type*, 4> outputs(values.size(), l.b.getIntNTy(ptx::BitsOf(type)));
  Value* loaded = l.b.CallHelper(Helper::kSurfaceLoad, outputs, inputs, PackImm(imm));
  for (unsigned i = 0; i < values.size(); ++i)
    l.Write(values[i], values.size() == 1 ? loaded : l.b.CreateExtractValue(loaded, i), type);
}

// sured.b or .p .op.geom.ctype.clamp [a, b], c
template <>
void Lift<semantic::SurfaceReduce>(Lifter& l, const Instruction& inst) {
  const ScalarType type = inst.type();
  SurfaceImm imm = SurfaceImmOf(l, inst, type, 1);
  imm.op = AtomicOpOf(l, inst, imm.formatted ? (imm.bytes == 8 ? ScalarType::kS64 : ScalarType::kS32) : type);
  imm.sign_by_format = imm.formatted;
  llvm::SmallVector<Value*, 8> inputs;
  ReadSurfaceOperands(l, l.Op(0), imm, inputs);
  RecordImage(l, Helper::kSurfaceAddress, AccessKind::kAtomic, imm.bytes, inputs, PackImm(imm));
  inputs.push_back(l.AsInt(l.Read(l.Op(1), type)));
  l.b.CallHelper(Helper::kSurfaceReduce, {}, inputs, PackImm(imm));
}

}  // namespace gridloom::exec
