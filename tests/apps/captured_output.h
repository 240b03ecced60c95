// What a part of a program, its kernels included, writes to standard output.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <string>

#include "app.h"

// Runs `body` with standard output going to a file and returns what was written.
template <class Body>
std::string CapturedOutput(Body body) {
  std::fflush(stdout);
  std::FILE* file = std::tmpfile();
  const int saved = dup(1);
  dup2(fileno(file), 1);
  body();
  std::fflush(stdout);
  dup2(saved, 1);
  close(saved);
  std::string text(static_cast<std::size_t>(lseek(fileno(file), 0, SEEK_END)), 0);
  const ssize_t bytes = pread(fileno(file), text.data(), text.size(), 0);
  std::fclose(file);
  text.resize(bytes < 0 ? 0 : bytes);
  return text;
}
