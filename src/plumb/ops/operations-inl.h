// The operations that more than one implementation computes; implementations.h includes this once in the namespace of
// each. No include guard, therefore. Each is documented with the operation of the same name, which has checked the
// arguments.

Tensor self_attention(const Tensor& packed, const Ragged& layout, const HeadShape& shape, bool causal);
Tensor cross_attention(const Tensor& query, const Tensor& packed, const Ragged& query_layout, const Ragged& key_layout,
                       const HeadShape& shape);
/// The kernels: float32 only; at least one token.
Tensor relative_attention(const Tensor& content, const Tensor& position, const Tensor& key_value,
                          const Tensor& distance, const Ragged& layout, const HeadShape& shape);
Tensor cached_attention(const Tensor& query, const Ragged& layout, const CachedKeys& cache, const HeadShape& shape);

CrossEntropy cross_entropy(const Tensor& logits, const std::vector<int64_t>& labels, const std::vector<double>& weights,
                           double smoothing, double scale);
CrossEntropy linear_cross_entropy(const Tensor& hidden, const Tensor& weight, const Tensor& bias,
                                  const std::vector<int64_t>& labels, const std::vector<double>& weights,
                                  double smoothing, double scale);

/// `residual` may be undefined.
Tensor add_dropout(const Tensor& residual, const Tensor& x, double p, const DropoutKey& key);

Tensor layer_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, double eps);
Tensor rms_norm(const Tensor& x, const Tensor& gamma, double eps);
Tensor silu(const Tensor& x);
Tensor gelu_tanh(const Tensor& x);

Tensor matrix_product(const Tensor& a, const Tensor& b, bool transpose_a, bool transpose_b);
/// LibTorch's on a GPU: bfloat16 only.
Tensor gemm(const Tensor& a, const Tensor& b, const GemmOptions& options);
Tensor symmetric_product(const Tensor& a, const Tensor& b, const SymmetricOptions& options);
Tensor column_sums(const Tensor& x);
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, Activation activation);
/// dy where y > 0, else 0. NaN in y lets dy through.
Tensor relu_gradient(const Tensor& dy, const Tensor& y);
/// `start` is defined; at least one token.
LstmResult lstm(const Tensor& x, const LstmWeights& weights, const LstmState& start, const Ragged& layout);
/// The kernels: float32 only; at least one element.
std::unique_ptr<PackedLinear::Weight> pack(const Tensor& weight, Precision precision);
/// The kernels: float32 only.
Tensor to_bfloat16(const Tensor& x);

TopScores top_scores(const Tensor& logits, int64_t k, int64_t first_id, bool normalize);

template <typename Update>
void update(const std::vector<Update>& updates, const std::vector<Tensor>& gradients,
            const UpdatedPieces<Update::kVectors>& pieces);
DeviceScalar sum_of_squares(const std::vector<Tensor>& tensors);
