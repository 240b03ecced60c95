#include "interpose/objects/free.h"

#include "interpose/objects/graph_memory.h"
#include "interpose/objects/pool.h"

namespace gridloom::session {

using namespace cuda;

CUresult BeginFree(std::uint64_t pointer, FreeOp* op) {
  *op = {pointer, nullptr, GraphMemory::Find(pointer)};
  if (op->of_graph != nullptr) return op->of_graph->BeginFree() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  op->pool = MemoryPool::Find(pointer);
  if (op->pool == nullptr) return CUDA_ERROR_NOT_FOUND;
  return op->pool->BeginFree(pointer) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

void CancelFree(const FreeOp& op) {
  if (op.of_graph != nullptr) op.of_graph->CancelFree();
  else op.pool->CancelFree(op.address);
}

// Memory of a graph goes with the last who has it: the operation may be that one.
void RunFree(const FreeOp& op) {
  if (op.pool != nullptr) op.pool->Free(op.address);
}

}  // namespace gridloom::session
