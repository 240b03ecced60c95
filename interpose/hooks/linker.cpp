// cuLink*.

#include "hooks/support.h"
#include "interpose/objects/link_job.h"
#include "rewriter/support/whole_file.h"

namespace gridloom::hooks {

using session::LinkJob;

namespace {

CUresult FindJob(Process& process, CUlinkState state, std::shared_ptr<LinkJob>* job) {
  *job = process.handles.link_jobs.Find(state);
  return *job != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

}  // namespace

CUresult cuLinkCreate_v2(Process& process, unsigned count, CUjit_option* keys, void** values, CUlinkState* state) {
  GL_CU_REQUIRE(state != nullptr);
  auto job = std::make_shared<LinkJob>();
  GL_CU_TRY(session::JitOptions::Parse(count, keys, values, &job->options));
  *state = process.handles.link_jobs.Add(std::move(job));
  return CUDA_SUCCESS;
}

CUresult cuLinkAddData_v2(Process& process, CUlinkState state, CUjitInputType type, void* data, std::size_t bytes,
                          const char* name, unsigned, CUjit_option*, void**) {
  GL_CU_REQUIRE(data != nullptr && bytes != 0);
  std::shared_ptr<LinkJob> job;
  GL_CU_TRY(FindJob(process, state, &job));
  return job->Add(type, data, bytes, name != nullptr ? name : "input", ThisContext().device());
}

CUresult cuLinkAddFile_v2(Process& process, CUlinkState state, CUjitInputType type, const char* path, unsigned,
                          CUjit_option*, void**) {
  GL_CU_REQUIRE(path != nullptr);
  std::shared_ptr<LinkJob> job;
  GL_CU_TRY(FindJob(process, state, &job));
  const auto bytes = ReadWholeFile(path);
  if (!bytes.ok()) return CUDA_ERROR_FILE_NOT_FOUND;
  return job->Add(type, bytes->data(), bytes->size(), path, ThisContext().device());
}

CUresult cuLinkComplete(Process& process, CUlinkState state, void** image, std::size_t* bytes) {
  GL_CU_REQUIRE(image != nullptr);
  std::shared_ptr<LinkJob> job;
  GL_CU_TRY(FindJob(process, state, &job));
  return job->Complete(ThisContext().device(), image, bytes);
}

CUresult cuLinkDestroy(Process& process, CUlinkState state) {
  return process.handles.link_jobs.Remove(state) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

}  // namespace gridloom::hooks
