// tex, tld4, txq, suld, sust, sured, suq and istypep (PTX ISA, 9.7.10 and 9.7.11) as calls of runtime helpers, which
// know the objects. Operands are handed over in the order image_immediates.h gives.
#include <array>
#include <optional>

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

}  // namespace

// The operand that names a texture, sampler or surface: a handle in a register or parameter, or the address of the
// variable that holds it.
Value* FunctionLifter::ImageHandle(const Operand& operand) {
  if (operand.kind == OperandKind::kSymbol && operand.variable) {
    if (const auto it = kernel_params_.find(operand.variable); it != kernel_params_.end())
      return b_.LoadParam(b_.getInt64Ty(), b_.getInt64(it->second));
    if (const auto it = scalar_params_.find(operand.variable); it != scalar_params_.end())
      return b_.CreateLoad(b_.getInt64Ty(), it->second);
  }
  return Read(operand, ScalarType::kB64);
}

/// Appends `count` coordinates of a type, after the layer if there is one.
void FunctionLifter::ReadCoordinates(const Operand& operand, bool layered, unsigned count, ScalarType type,
                                     llvm::SmallVectorImpl<Value*>& out) {
  const std::vector<Operand> components = Components(operand);
  if (components.size() < count + (layered ? 1 : 0)) RefuseInstruction("has too few coordinates");
  std::size_t at = 0;
  if (layered) out.push_back(Read(components[at++], ScalarType::kU32));
  for (unsigned i = 0; i < count; ++i) out.push_back(Read(components[at++], type));
}

/// Result of a texture fetch: four words, or their halves. `destination` may be a pair with a predicate (always
/// resident).
void FunctionLifter::WriteTexels(const Operand& destination, Value* texels, ScalarType type) {
  const bool pair = destination.kind == OperandKind::kPair;
  const std::vector<Operand> components = Components(pair ? destination.elements[0] : destination);
  std::vector<Value*> words;
  for (unsigned i = 0; i < 4; ++i) words.push_back(b_.CreateExtractValue(texels, i));
  if (type == ScalarType::kF16 || type == ScalarType::kF16x2) {
    for (Value*& word : words) word = emit_.FloatToHalf(b_.CreateBitCast(word, b_.getFloatTy()));
  }
  if (type == ScalarType::kF16x2) {
    words = {JoinLanes({words[0], words[1]}, b_.getInt32Ty()), JoinLanes({words[2], words[3]}, b_.getInt32Ty())};
  }
  if (components.size() != words.size()) RefuseInstruction("has a destination of another width");
  for (std::size_t i = 0; i < words.size(); ++i) Write(components[i], words[i], type);
  if (pair) Write(destination.elements[1], b_.getTrue(), ScalarType::kPred);
}

// [texture, {sampler,} coordinates]; the brackets are optional.
void FunctionLifter::ReadTextureOperands(TextureImm& imm, ScalarType type, std::size_t& next,
                                         llvm::SmallVectorImpl<Value*>& inputs) {
  std::vector<Operand> operands;
  if (Op(1).kind == OperandKind::kAddress) {
    operands = Op(1).address->base;
    operands.insert(operands.end(), Op(1).address->elements.begin(), Op(1).address->elements.end());
    next = 2;
  } else {
    operands = {Op(1), Op(2)};
    next = 3;
  }
  if (operands.size() < 2 || operands.size() > 3) RefuseInstruction("needs [texture, coordinates]");
  inputs.push_back(ImageHandle(operands[0]));
  if (operands.size() == 3) {
    const Operand& sampler = operands[1];
    if (sampler.kind == OperandKind::kSymbol && sampler.variable && sampler.variable->has_initializer) {
      imm.sampler = SamplerSource::kSettings;
      imm.settings = SettingsOf(*sampler.variable);
    } else {
      imm.sampler = SamplerSource::kOperand;
      inputs.push_back(ImageHandle(sampler));
    }
  }
  ReadCoordinates(operands.back(), IsLayered(imm.geometry), CoordinateCount(imm.geometry), type, inputs);
}

// tex{.base,.level,.grad}.geom.v4.dtype.ctype d{|p}, [a, {b,} c] {, lod | dPdx, dPdy} {, e} {, f}
// tld4.comp.geom.v4.dtype.f32 d{|p}, [a, {b,} c] {, e} {, f}
template <>
void FunctionLifter::Lift<semantic::Texture>(const Instruction& inst) {
  const bool gather = inst.opcode == Opcode::kTld4;
  const std::optional<ImageGeometry> geometry = GeometryOf(inst);
  const std::optional<std::uint8_t> component = ComponentOf(inst);
  if (!geometry || (gather && !component)) RefuseInstruction();  // multi-sample textures: there are none in CUDA
  const ScalarType type = inst.type(1);
  TextureImm imm{.geometry = *geometry, .float_coordinates = type == ScalarType::kF32};
  if (gather) imm.component = *component;
  if (inst.Has(Mod::kLevel)) imm.lod = LodMode::kLevel;
  if (inst.Has(Mod::kGrad)) imm.lod = LodMode::kGradient;
  const unsigned axes = CoordinateCount(*geometry);
  llvm::SmallVector<Value*, 16> inputs;
  std::size_t next = 0;
  ReadTextureOperands(imm, type, next, inputs);
  if (imm.lod == LodMode::kLevel) inputs.push_back(Read(Op(next++), type));
  if (imm.lod == LodMode::kGradient) {
    for (int i = 0; i < 2; ++i) ReadCoordinates(Op(next++), false, axes, ScalarType::kF32, inputs);
  }
  if (next < OpCount() && Op(next).kind == OperandKind::kVector) {
    imm.has_offset = true;
    ReadCoordinates(Op(next++), false, axes, ScalarType::kS32, inputs);
  }
  if (next < OpCount()) RefuseInstruction("compares depths, which is not supported");
  imm.gather = gather;
  RecordImage(Helper::kTextureAddress, AccessKind::kRead, 1, inputs, PackImm(imm));
  llvm::Type* word = b_.getInt32Ty();
  Value* texels =
      b_.CallHelper(gather ? Helper::kTextureGather : Helper::kTexture, {word, word, word, word}, inputs, PackImm(imm));
  WriteTexels(Op(0), texels, inst.type(0));
}

// txq{.level}.query.b32 d, [a] {, lod};  suq.query.b32 d, [a]
template <>
void FunctionLifter::Lift<semantic::ImageQuery>(const Instruction& inst) {
  const std::optional<ImageQuery> query = QueryOf(inst);
  if (!query) RefuseInstruction();
  const ImageQueryImm imm{.query = *query, .surface = inst.opcode == Opcode::kSuq, .has_level = inst.Has(Mod::kLevel)};
  const Operand& name =
      Op(1).kind == OperandKind::kAddress && !Op(1).address->base.empty() ? Op(1).address->base[0] : Op(1);
  const bool is_sampler =
      name.variable && name.variable->type == ScalarType::kSamplerRef && name.variable->has_initializer;
  if (is_sampler) return Write(Op(0), b_.getInt32(SamplerQuery(SettingsOf(*name.variable), *query)), ScalarType::kB32);
  llvm::SmallVector<Value*, 2> inputs{ImageHandle(name)};
  if (imm.has_level) inputs.push_back(Read(Op(2), ScalarType::kU32));
  Write(Op(0), b_.CallHelper(Helper::kImageQuery, {b_.getInt32Ty()}, inputs, PackImm(imm)), ScalarType::kB32);
}

template <>
void FunctionLifter::Lift<semantic::Istypep>(const Instruction& inst) {
  const ImageQuery query = inst.type() == ScalarType::kSurfRef ? ImageQuery::kIsSurface : ImageQuery::kIsTexture;
  Value* found = b_.CallHelper(Helper::kImageQuery, {b_.getInt32Ty()}, {ImageHandle(Op(1))},
                               PackImm(ImageQueryImm{.query = query}));
  Write(Op(0), b_.CreateICmpNE(found, b_.getInt32(0)), ScalarType::kPred);
}

SurfaceImm FunctionLifter::SurfaceImmOf(const Instruction& inst, ScalarType type, std::size_t count) const {
  const std::optional<ImageGeometry> geometry = GeometryOf(inst);
  if (!geometry || IsCube(*geometry) || type == ScalarType::kNone || count == 0 || count > 4) RefuseInstruction();
  SurfaceImm imm{.geometry = *geometry,
                 .bytes = static_cast<std::uint8_t>(ptx::BytesOf(type)),
                 .count = static_cast<std::uint8_t>(count)};
  if (inst.Has(Mod::kClamp)) imm.out_of_range = OutOfRange::kClamp;
  if (inst.Has(Mod::kZero)) imm.out_of_range = OutOfRange::kZero;
  imm.formatted = inst.Has(Mod::kP);
  return imm;
}

/// Inputs of a surface helper: [a, b] of the instruction.
void FunctionLifter::ReadSurfaceOperands(const Operand& operand, const SurfaceImm& imm,
                                         llvm::SmallVectorImpl<Value*>& inputs) {
  if (operand.kind != OperandKind::kAddress || operand.address->base.empty() || operand.address->elements.size() != 1) {
    RefuseInstruction("needs [surface, coordinates]");
  }
  inputs.push_back(ImageHandle(operand.address->base[0]));
  ReadCoordinates(operand.address->elements[0], IsLayered(imm.geometry), CoordinateCount(imm.geometry),
                  ScalarType::kS32, inputs);
}

/// Where an instruction accesses an image is known to the runtime only. Whoever wants accesses to memory alone is not
/// told of images'.
void FunctionLifter::RecordImage(Helper locate, AccessKind kind, std::size_t bytes, llvm::ArrayRef<Value*> inputs,
                                 std::uint64_t imm) {
  if (b_.record != Recording::kAll) return;
  b_.RecordAccess(kind, Space::kGlobal, bytes, b_.CallHelper(locate, {b_.getInt64Ty()}, inputs, imm));
}

// suld.b.geom{.cop}.vec.dtype.clamp d, [a, b];  sust.b or .p  [a, b], c
template <>
void FunctionLifter::Lift<semantic::Surface>(const Instruction& inst) {
  const bool load = inst.opcode == Opcode::kSuld;
  const ScalarType type = inst.type();
  const std::vector<Operand> values = Components(Op(load ? 0 : 1));
  const SurfaceImm imm = SurfaceImmOf(inst, type, values.size());
  llvm::SmallVector<Value*, 8> inputs;
  ReadSurfaceOperands(Op(load ? 1 : 0), imm, inputs);
  const std::size_t bytes = imm.formatted ? 1 : std::size_t{imm.bytes} * imm.count;
  RecordImage(Helper::kSurfaceAddress, load ? AccessKind::kRead : AccessKind::kWrite, bytes, inputs, PackImm(imm));
  if (!load) {
    for (const Operand& value : values) inputs.push_back(AsInt(Read(value, type)));
    b_.CallHelper(Helper::kSurfaceStore, {}, inputs, PackImm(imm));
    return;
  }
  const llvm::SmallVector<llvm::Type*, 4> outputs(values.size(), b_.getIntNTy(ptx::BitsOf(type)));
  Value* loaded = b_.CallHelper(Helper::kSurfaceLoad, outputs, inputs, PackImm(imm));
  for (unsigned i = 0; i < values.size(); ++i)
    Write(values[i], values.size() == 1 ? loaded : b_.CreateExtractValue(loaded, i), type);
}

// sured.b or .p .op.geom.ctype.clamp [a, b], c
template <>
void FunctionLifter::Lift<semantic::SurfaceReduce>(const Instruction& inst) {
  const ScalarType type = inst.type();
  SurfaceImm imm = SurfaceImmOf(inst, type, 1);
  imm.op = AtomicOpOf(inst, imm.formatted ? (imm.bytes == 8 ? ScalarType::kS64 : ScalarType::kS32) : type);
  imm.sign_by_format = imm.formatted;
  llvm::SmallVector<Value*, 8> inputs;
  ReadSurfaceOperands(Op(0), imm, inputs);
  RecordImage(Helper::kSurfaceAddress, AccessKind::kAtomic, imm.bytes, inputs, PackImm(imm));
  inputs.push_back(AsInt(Read(Op(1), type)));
  b_.CallHelper(Helper::kSurfaceReduce, {}, inputs, PackImm(imm));
}

}  // namespace gridloom::exec
