// The compiler library is loaded by path: only one of this build may be used.
#include <dlfcn.h>

#include <catch2/catch.hpp>

#include "sim/exec/runtime/compiler_loader.h"

using namespace gridloom;

TEST_CASE("OpenCompiler_OfThisBuild_GivesItsFunctions") {
  const auto library = exec::OpenCompiler(GL_COMPILER);
  REQUIRE(library.ok());
  CHECK(dlsym(*library, "gridloom_compile") != nullptr);
}

TEST_CASE("OpenCompiler_OfAnotherBuild_IsRefusedWithItsPath") {
  const auto library = exec::OpenCompiler(GL_FOREIGN_COMPILER);
  REQUIRE_FALSE(library.ok());
  CHECK_THAT(library.error().message, Catch::Contains(GL_FOREIGN_COMPILER) && Catch::Contains("another build") &&
                                          Catch::Contains("of another day"));
}

TEST_CASE("OpenCompiler_NoSuchFile_SaysWhereItBelongs") {
  const auto library = exec::OpenCompiler("/nonexistent/libgridloom-compiler.so");
  REQUIRE_FALSE(library.ok());
  CHECK_THAT(library.error().message,
             Catch::Contains("/nonexistent/libgridloom-compiler.so") && Catch::Contains("belongs beside"));
}
