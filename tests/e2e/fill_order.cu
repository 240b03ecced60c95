// Fills what it copies to the device in orders that fill_order_test.py knows. usage: fill_order PART
#include <cuda_runtime.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#define CU(call)                                                                     \
  do {                                                                               \
    if (const cudaError_t status = (call); status != cudaSuccess) {                  \
      std::printf("%s: %s, line %d\n", #call, cudaGetErrorString(status), __LINE__); \
      std::exit(1);                                                                  \
    }                                                                                \
  } while (0)

constexpr std::size_t kPage = 4096, kPages = 8, kBytes = kPages * kPage;

/// Copies there and back, and compares.
void Copy(const char* memory, std::size_t bytes = kBytes) {
  char* device = nullptr;
  std::vector<char> back(bytes);
  CU(cudaMalloc(&device, bytes));
  CU(cudaMemcpyAsync(device, memory, bytes, cudaMemcpyHostToDevice));
  CU(cudaMemcpy(back.data(), device, bytes, cudaMemcpyDeviceToHost));
  CU(cudaFree(device));
  std::printf("%s\n", std::memcmp(back.data(), memory, bytes) == 0 ? "PASS" : "FAIL");
}

char* Pinned() {
  char* memory = nullptr;
  CU(cudaMallocHost(&memory, kBytes));
  return memory;
}

void Fill(char* memory, std::vector<int> pages) {
  for (const int page : pages) std::memset(memory + page * kPage, page + 1, kPage);
}

void Stores() {
  char* const memory = Pinned();
  Fill(memory, {5, 2, 7, 0, 5});
  Copy(memory);
  Fill(memory, {1, 0});
  Copy(memory);
  Copy(memory);
  // From the middle of a page: what is copied is there when both pages are.
  Copy(memory + kPage / 2, 2 * kPage);
  CU(cudaFreeHost(memory));
}

void Reads() {
  char* const memory = Pinned();
  const int random = open("/dev/urandom", O_RDONLY);
  for (int page = kPages - 1; page >= 0; --page) {
    if (read(random, memory + page * kPage, kPage) != static_cast<ssize_t>(kPage))
      std::printf("FAIL: nothing was read\n");
  }
  close(random);
  Copy(memory);
}

void Threads() {
  char* const memory = Pinned();
  std::thread([&] { Fill(memory, {6, 4}); }).join();
  std::thread([&] { Fill(memory, {3, 1}); }).join();
  Fill(memory, {0, 2, 5, 7});
  Copy(memory);
}

void Registered() {
  char* const memory = static_cast<char*>(std::aligned_alloc(kPage, kBytes));
  std::memset(memory, 1, kBytes);
  CU(cudaHostRegister(memory, kBytes, cudaHostRegisterDefault));
  Fill(memory, {1, 0});
  Copy(memory);  // what the rest was filled with is older
  Fill(memory, {7, 6, 5, 4, 3, 2});
  Copy(memory);
  CU(cudaHostUnregister(memory));
  std::free(memory);
}

void Pageable() {
  std::vector<char> memory(kBytes, 1);
  Copy(memory.data());
}

char* guarded = nullptr;
int caught = 0;
void OnFault(int, siginfo_t* info, void*) {
  if (info->si_addr < guarded || info->si_addr >= guarded + kPage) _exit(3);
  ++caught;
  mprotect(guarded, kPage, PROT_READ | PROT_WRITE);
}

/// The program's own handler gets its own faults and no others; a child has memory of its own.
void Signals() {
  struct sigaction action = {};
  action.sa_sigaction = OnFault;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, nullptr);
  char* const memory = Pinned();
  guarded = static_cast<char*>(mmap(nullptr, kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  Fill(memory, {3});
  *static_cast<volatile char*>(guarded) = 1;
  std::fflush(stdout);
  if (const pid_t child = fork(); child == 0) {
    Fill(memory, {2, 1, 0, 4, 5});
    _exit(memory[kPage] == 2 ? 0 : 1);
  } else {
    int status = 1;
    waitpid(child, &status, 0);
    std::printf("%s\n", status == 0 && memory[kPage] == 0 ? "PASS" : "FAIL");
  }
  Fill(memory, {0, 1, 2, 4, 5, 6, 7});
  Copy(memory);
  std::printf("caught %d\n", caught);
}

int main(int count, char** arguments) {
  const std::string part = count > 1 ? arguments[1] : "";
  CU(cudaFree(nullptr));
  if (part == "stores") Stores();
  else if (part == "reads") Reads();
  else if (part == "threads") Threads();
  else if (part == "registered") Registered();
  else if (part == "pageable") Pageable();
  else if (part == "signals") Signals();
  else return 2;
  return 0;
}
