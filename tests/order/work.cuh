// The works themselves.
#pragma once

#include <cuda_runtime.h>

#include "work.h"

namespace order {

__host__ __device__ inline void Note(Record* record, std::uint32_t fault, std::uint32_t read, std::uint32_t word,
                                     std::uint32_t late, std::uint32_t seen) {
  if (record->fault != Record::kNone) return;
  record->fault_read = read, record->fault_word = word, record->fault_late = late, record->seen = seen;
  record->fault = fault;
}

__host__ __device__ inline void CheckReads(Record* record, std::uint32_t late) {
  for (std::uint32_t i = 0; i < record->read_count; ++i) {
    const Record::Read read = record->reads[i];
    for (std::uint32_t word = 0; word < kWords; ++word) {
      const std::uint32_t seen = read.cell[word];
      if (seen != read.base + word * read.step) Note(record, Record::kRead, i, word, late, seen);
    }
  }
}

__host__ __device__ inline void CompilerBarrier() { asm volatile("" ::: "memory"); }

/// Block `part` of `parts`: reads what has to be there, marks its words of the own cell, takes its time, reads again,
/// and writes.
__host__ __device__ inline void Perform(Record* record, std::uint32_t part, std::uint32_t parts) {
  CheckReads(record, 0);
  std::uint32_t* const own = record->own;
  for (std::uint32_t word = part; own != nullptr && word < kWords; word += parts) {
    const std::uint32_t before = own[word];
    if (record->checks_before != 0 && before != record->before_base + word * record->before_step)
      Note(record, Record::kOwnBefore, 0, word, 0, before);
    own[word] = ~(record->base + word * record->step);
  }
  CompilerBarrier();
  std::uint32_t x = part;
  for (std::uint32_t i = record->spin; i != 0; --i) x = x * 1664525u + 1013904223u;
  record->sink[part] = x;
  CompilerBarrier();
  CheckReads(record, 1);
  for (std::uint32_t word = part; own != nullptr && word < kWords; word += parts) {
    const std::uint32_t mark = own[word], value = record->base + word * record->step;
    if (mark != ~value) Note(record, Record::kOwnMeanwhile, 0, word, 1, mark);
    own[word] = value;
  }
  record->runs[part] += 1;
}

static __global__ void Work(Record* record) {
  if (threadIdx.x == 0) Perform(record, blockIdx.x, gridDim.x);
}

static __global__ void WorkOfNode(NodeRuns* runs) {
  if (threadIdx.x != 0) return;
  const std::uint32_t run = runs->next[blockIdx.x];
  runs->next[blockIdx.x] = run + 1;
  if (run < runs->count) Perform(runs->records[run], blockIdx.x, gridDim.x);
  else runs->overrun = 1;
}

static __global__ void Gate(const volatile std::uint32_t* flag, Record* record) {
  while (*flag == 0) {
  }
  Perform(record, 0, 1);
}

static __global__ void SetCondition(cudaGraphConditionalHandle condition, ConditionRuns* runs) {
  const std::uint32_t run = runs->next;
  runs->next = run + 1;
  if (run >= runs->count) runs->overrun = 1;
  cudaGraphSetConditional(condition, run < runs->count ? runs->values[run] : 0);
}

}  // namespace order
