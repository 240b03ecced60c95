#include <type_traits>

#include "rewriter/ptx/printer_impl.h"

namespace gridloom::ptx {
namespace {

std::string_view TextOf(Linkage linkage) {
  switch (linkage) {
    case Linkage::kInternal: return "";
    case Linkage::kVisible: return ".visible ";
    case Linkage::kExtern: return ".extern ";
    case Linkage::kWeak: return ".weak ";
    case Linkage::kCommon: return ".common ";
  }
  return "";
}

}  // namespace

void Printer::PrintModule(const Module& module) {
  PrintHeader(module);
  for (const ModuleItem& item : module.items) {
    std::visit(
        [this](const auto& node) {
          using Node = std::decay_t<decltype(node)>;
          if constexpr (std::is_same_v<Node, Variable*>) {
            PrintVariable(*node);
            Write(";\n");
          } else if constexpr (std::is_same_v<Node, Function*>) {
            PrintFunction(*node);
          } else if constexpr (std::is_same_v<Node, AliasDirective>) {
            Write(".alias ");
            Write(node.alias);
            Write(", ");
            Write(node.aliasee);
            Write(";\n");
          } else {
            PrintText(node);
            out_ += '\n';
          }
        },
        item);
  }
}

void Printer::PrintHeader(const Module& module) {
  if (module.version_major != 0) {
    Write(".version ");
    WriteUnsigned(module.version_major);
    out_ += '.';
    WriteUnsigned(module.version_minor);
    out_ += '\n';
  }
  if (!module.targets.empty()) {
    Write(".target ");
    for (const std::string_view& target : module.targets) {
      if (&target != module.targets.data()) Write(", ");
      Write(target);
    }
    out_ += '\n';
  }
  if (module.has_address_size) {
    Write(".address_size ");
    WriteUnsigned(module.address_size);
    out_ += '\n';
  }
  if (!out_.empty()) out_ += '\n';
}

void Printer::PrintText(const TextDirective& directive) {
  Write(directive.name);
  if (!directive.text.empty()) {
    out_ += ' ';
    Write(directive.text);
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// Functions
// ---------------------------------------------------------------------------------------------------------------------

void Printer::PrintFunction(const Function& function) {
  PrintFunctionHeader(function);
  if (function.body) {
    out_ += '\n';
    PrintBlock(*function.body);
  } else {
    Write(";\n");
  }
  out_ += '\n';
}

void Printer::PrintFunctionCode(const Function& function, const SymbolNames& names) {
  with_places_ = false;
  names_ = &names;
  for (const auto* const variables : {&function.returns, &function.params}) {
    for (const Variable& variable : *variables)
      parameters_.emplace(&variable, "\1p" + std::to_string(parameters_.size()));
  }
  PrintFunction(function);
}

void Printer::PrintFunctionHeader(const Function& function) {
  Write(TextOf(function.linkage));
  Write(function.is_entry ? ".entry " : ".func ");
  PrintAttributes(function.attributes);
  if (!function.returns.empty()) {
    PrintParameters(function.returns, false);
    out_ += ' ';
  }
  Write(NameOf(function));
  const bool ellipsis =
      function.variadic_param && (function.params.empty() || function.params.back().element_count() != 0);
  if (!function.params.empty() || ellipsis) {
    PrintParameters(function.params, ellipsis);
  } else {
    Write("()");
  }
  if (function.noreturn) Write("\n.noreturn");
  for (const FunctionDirective& directive : function.directives) PrintFunctionDirective(directive);
}

void Printer::PrintParameters(const std::deque<Variable>& parameters, bool ellipsis) {
  out_ += '(';
  bool first = true;
  for (const Variable& parameter : parameters) {
    if (!first) Write(", ");
    first = false;
    PrintVariable(parameter);
  }
  if (ellipsis) Write(first ? "..." : ", ...");
  out_ += ')';
}

void Printer::PrintFunctionDirective(const FunctionDirective& directive) {
  Write("\n.");
  Write(directive.name);
  for (std::size_t i = 0; i < directive.values.size(); ++i) {
    Write(i == 0 ? " " : ", ");
    WriteUnsigned(directive.values[i]);
  }
  if (directive.text.empty()) return;
  out_ += ' ';
  Write(directive.text);
}

void Printer::PrintLabelDirective(const LabelDirective& directive) {
  Write(directive.name);
  if (directive.kind == LabelDirective::Kind::kCallPrototype) {
    Write(": .callprototype ");
    PrintParameters(directive.returns, false);
    Write(" _ ");
    PrintParameters(directive.params, false);
    if (directive.noreturn) Write(" .noreturn");
    if (!directive.rest.empty()) {
      out_ += ' ';
      Write(directive.rest);
    }
  } else {
    Write(directive.kind == LabelDirective::Kind::kBranchTargets ? ": .branchtargets " : ": .calltargets ");
    PrintOperands(directive.targets, ", ");
  }
  out_ += ';';
}

// ---------------------------------------------------------------------------------------------------------------------
// Variables
// ---------------------------------------------------------------------------------------------------------------------

void Printer::PrintVariable(const Variable& variable) {
  Write(TextOf(variable.linkage));
  out_ += '.';
  Write(ptx::TextOf(variable.space));
  for (const std::string_view sub_space : variable.sub_spaces) Write(sub_space);
  out_ += ' ';
  PrintAttributes(variable.attributes);
  PrintType(variable);
  Write(NameOf(variable));
  if (variable.range_count != 0) {
    out_ += '<';
    WriteUnsigned(variable.range_count);
    out_ += '>';
  }
  for (const std::uint64_t size : variable.dims) {
    out_ += '[';
    if (size != 0) WriteUnsigned(size);
    out_ += ']';
  }
  if (variable.has_initializer) PrintInitializer(variable);
}

void Printer::PrintAttributes(const std::vector<std::string_view>& attributes) {
  if (attributes.empty()) return;
  Write(".attribute(");
  for (const std::string_view& attribute : attributes) {
    if (&attribute != attributes.data()) Write(", ");
    out_ += '.';
    Write(attribute);
  }
  Write(") ");
}

void Printer::PrintType(const Variable& variable) {
  if (variable.align != 0) {
    Write(".align ");
    WriteUnsigned(variable.align);
    out_ += ' ';
  }
  if (variable.vector > 1) {
    Write(".v");
    WriteUnsigned(variable.vector);
    out_ += ' ';
  }
  out_ += '.';
  Write(Info(variable.type).text);
  out_ += ' ';
  if (variable.is_pointer) PrintPointer(variable);
}

void Printer::PrintPointer(const Variable& variable) {
  Write(".ptr ");
  if (variable.pointer_space != StateSpace::kGeneric) {
    out_ += '.';
    Write(ptx::TextOf(variable.pointer_space));
    out_ += ' ';
  }
  if (variable.pointer_align != 0) {
    Write(".align ");
    WriteUnsigned(variable.pointer_align);
    out_ += ' ';
  }
}

void Printer::PrintInitializer(const Variable& variable) {
  Write(" = ");
  if (variable.initializer.empty()) Write("{}");
  bool first = true;
  for (const Initializer& element : variable.initializer) {
    if (!first) Write(", ");
    first = false;
    out_.append(element.group, '{');
    if (!element.empty) PrintInitializerElement(element);
    out_.append(element.close, '}');
  }
}

void Printer::PrintInitializerElement(const Initializer& element) {
  if (!element.field.empty()) {
    Write(element.field);
    Write(" = ");
  }
  if (element.mask != 0) {
    Write("0x");
    int digits = 2;
    while (digits < 16 && element.mask >> (4 * digits) != 0) ++digits;
    WriteHex(element.mask, digits);
    out_ += '(';
  }
  if (const auto* integer = std::get_if<IntLiteral>(&element.value)) {
    PrintInt(*integer);
  } else if (const auto* number = std::get_if<FloatLiteral>(&element.value)) {
    PrintFloat(*number);
  } else {
    const auto& symbol = std::get<Operand>(element.value);
    Operand name = symbol;
    name.offset = 0;
    if (element.generic) Write("generic(");
    PrintOperand(name);
    if (element.generic) out_ += ')';
    if (symbol.offset != 0) WriteOffset(symbol.offset);
  }
  if (element.mask != 0) out_ += ')';
}

}  // namespace gridloom::ptx
