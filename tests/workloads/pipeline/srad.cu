// SRAD (Rodinia; the ninth program, ours: the paper's text names eight of nine): a step of speckle-reducing anisotropic
// diffusion on an image: how freely each pixel may mix with its neighbours, from how much they differ, and the mixing
// itself. A plane of coefficients goes from one kernel to the next, which reads the image once more, too.
#include "pipeline/program.h"

constexpr int kThreadsX = 32, kThreadsY = 4;
constexpr float kStep = 0.5f;

/// A pixel's neighbours less the pixel itself; at the border a pixel is its own neighbour.
struct Differences {
  float north, south, west, east;
};
__device__ inline Differences DifferencesOf(const float* image, float here, int x, int y, int width, int height) {
  const int row = y * width;
  return {image[(y > 0 ? row - width : row) + x] - here, image[(y < height - 1 ? row + width : row) + x] - here,
          image[row + (x > 0 ? x - 1 : x)] - here, image[row + (x < width - 1 ? x + 1 : x)] - here};
}

__global__ void __launch_bounds__(kThreadsX* kThreadsY)
    Coefficients(const float* image, float* coefficients, int width, int height, float speckle) {
  const int x = blockIdx.x * kThreadsX + threadIdx.x, y = blockIdx.y * kThreadsY + threadIdx.y;
  if (x >= width || y >= height) return;
  const float here = image[y * width + x];
  const Differences d = DifferencesOf(image, here, x, y, width, height);
  const float squares = (d.north * d.north + d.south * d.south + d.west * d.west + d.east * d.east) / (here * here);
  const float laplacian = (d.north + d.south + d.west + d.east) / here;
  const float denominator = 1 + 0.25f * laplacian;
  const float variation = (0.5f * squares - 0.0625f * laplacian * laplacian) / (denominator * denominator);
  coefficients[y * width + x] = __saturatef(1 / (1 + (variation - speckle) / (speckle * (1 + speckle))));
}

__global__ void __launch_bounds__(kThreadsX* kThreadsY)
    Update(const float* image, const float* coefficients, float* out, int width, int height) {
  const int x = blockIdx.x * kThreadsX + threadIdx.x, y = blockIdx.y * kThreadsY + threadIdx.y;
  if (x >= width || y >= height) return;
  const int at = y * width + x;
  const float here = image[at], mine = coefficients[at];
  const Differences d = DifferencesOf(image, here, x, y, width, height);
  const float south = coefficients[y < height - 1 ? at + width : at], east = coefficients[x < width - 1 ? at + 1 : at];
  out[at] = here + 0.25f * kStep * (mine * (d.north + d.west) + south * d.south + east * d.east);
}

/// Two tones, with speckle in proportion to the tone.
std::vector<float> Image(int width, int height, int index) {
  Random random(600 + index);
  const float tilt = random.Uniform(-0.5f, 0.5f);
  std::vector<float> image(static_cast<std::size_t>(width) * height);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const bool bright = static_cast<float>(x - width / 2) > tilt * static_cast<float>(y - height / 2);
      image[static_cast<std::size_t>(y) * width + x] = (bright ? 2.5f : 1.2f) * random.Uniform(0.7f, 1.3f);
    }
  }
  return image;
}

/// Squared coefficient of variation.
float Speckle(const std::vector<float>& image) {
  double sum = 0, squares = 0;
  for (float value : image) {
    sum += value;
    squares += static_cast<double>(value) * value;
  }
  const double mean = sum / static_cast<double>(image.size());
  return static_cast<float>(squares / static_cast<double>(image.size()) / (mean * mean) - 1);
}

struct Set {
  Set(const Options& options, int index)
      : image(Image(options["width"], options["height"], index)),
        speckle(Speckle(image.host)),
        coefficients(image.host.size()),
        out(image.host.size()) {}
  const Input<float> image;
  const float speckle;
  const DeviceArray<float> coefficients, out;
};

/// The same step in double, from a padded copy of the image.
struct Want {
  Want(const Set& set, int width, int height)
      : width(width), height(height), coefficients(set.image.host.size()), out(coefficients) {
    const auto image = [&](int x, int y) {
      return static_cast<double>(set.image.host[std::clamp(y, 0, height - 1) * width + std::clamp(x, 0, width - 1)]);
    };
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) {
        const double here = image(x, y),
                     sides[4] = {image(x, y - 1), image(x, y + 1), image(x - 1, y), image(x + 1, y)};
        double squares = 0, laplacian = 0;
        for (double side : sides) {
          squares += (side / here - 1) * (side / here - 1);
          laplacian += side / here - 1;
        }
        const double variation = (squares / 2 - laplacian * laplacian / 16) / std::pow(1 + laplacian / 4, 2);
        const double q = set.speckle;
        coefficients[y * width + x] = std::clamp(1 / (1 + (variation - q) / (q * (1 + q))), 0.0, 1.0);
      }
    }
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) {
        const double here = image(x, y), mine = Coefficient(x, y);
        out[y * width + x] =
            here + kStep / 4 *
                       (mine * (image(x, y - 1) - here) + Coefficient(x, y + 1) * (image(x, y + 1) - here) +
                        mine * (image(x - 1, y) - here) + Coefficient(x + 1, y) * (image(x + 1, y) - here));
      }
    }
  }
  double Coefficient(int x, int y) const {
    return coefficients[std::min(y, height - 1) * width + std::min(x, width - 1)];
  }
  int width, height;
  std::vector<double> coefficients, out;
};

int main(int argc, char** argv) {
  const Options options("srad", argc, argv, {{"width", 160, 384, 8, 4096}, {"height", 160, 384, 8, 4096}});
  const int width = options["width"], height = options["height"];
  Pipeline<Set> pipeline(options);
  const dim3 ctas(Ctas(width, kThreadsX), Ctas(height, kThreadsY)), threads(kThreadsX, kThreadsY);
  pipeline.Stage("coefficients", Coefficients, ctas, threads,
                 [=](const Set& set, auto launch) { launch(set.image, set.coefficients, width, height, set.speckle); });
  pipeline.Stage("update", Update, ctas, threads,
                 [=](const Set& set, auto launch) { launch(set.image, set.coefficients, set.out, width, height); });
  pipeline.Run();

  for (const Set& set : pipeline.sets()) {
    const Want want(set, width, height);
    const std::vector<float> coefficients = pipeline.Result(set.coefficients), out = pipeline.Result(set.out);
    for (std::size_t at = 0; at < out.size(); ++at) {
      // Differences are divided by `speckle`, some 0.1: coefficients lose up to a hundred times what a float does, the
      // image less.
      Near("coefficient", static_cast<long>(at), coefficients[at], want.coefficients[at], 0, 1e-4);
      Near("out", static_cast<long>(at), out[at], want.out[at], 0, 1e-4);
    }
  }
  return pipeline.Finish();
}
