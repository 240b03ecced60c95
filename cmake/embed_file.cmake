# Writes a C++ file with the bytes of INPUT as NAMESPACE::SYMBOL.
file(READ ${INPUT} bytes HEX)
string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")   # 16 bytes a line
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${bytes}")
file(WRITE ${OUTPUT}
  "#include <string_view>\n"
  "namespace ${NAMESPACE} {\n"
  "static constexpr char ${SYMBOL}Bytes[] = {\n${bytes}\n};\n"
  "extern const std::string_view ${SYMBOL};\n"
  "const std::string_view ${SYMBOL}{${SYMBOL}Bytes, sizeof ${SYMBOL}Bytes};\n"
  "}\n")
