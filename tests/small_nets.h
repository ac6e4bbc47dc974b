/* Nets of a few operators, for tests that saturate them: see onnx_text.h for the language. */
#ifndef TARN_TESTS_SMALL_NETS_H
#define TARN_TESTS_SMALL_NETS_H

#define NET_CONV_NORM_RELU                                                                         \
  "in x f32 1,3,6,6\nrand w 4,3,3,3\npos s 4\nrand b 4\nrand m 4\npos v 4\n"                       \
  "node Conv c x w -> t : pads=1,1,1,1\nnode BatchNormalization n t s b m v -> u\n"                \
  "node Relu r u -> y\nout y\n"
#define NET_RESIDUAL                                                                               \
  "in x f32 1,4,6,6\nrand w 4,4,3,3\nrand w2 4,4,3,3\npos s 4\nrand b 4\nrand m 4\npos v 4\n"      \
  "node Conv c x w -> t : pads=1,1,1,1\nnode BatchNormalization n t s b m v -> u\n"                \
  "node Relu r u -> z\nnode Conv d z w2 -> t2 : pads=1,1,1,1\n"                                    \
  "node BatchNormalization n2 t2 s b m v -> u2\nnode Add a x u2 -> q\nnode Relu r2 q -> y\n"       \
  "out y\n"
#define NET_SOFTMAX "in x f32 2,3,5\nnode Softmax s x -> y : axis=-1\nout y\n"
#define NET_LAYER_NORM                                                                             \
  "in x f32 2,3,8\nrand g 8\nrand b 8\ninit two f32 1 : 2\ninit eps f32 1 : 0.001\n"               \
  "node ReduceMean m x -> mu : axes=-1,-1\nnode Sub d x mu -> c\nnode Pow p c two -> c2\n"         \
  "node ReduceMean v c2 -> var : axes=-1,-1\nnode Add e var eps -> ve\nnode Sqrt s ve -> sd\n"     \
  "node Div q c sd -> n\nnode Mul k n g -> ng\nnode Add a ng b -> y\nout y\n"
#define NET_ATTENTION                                                                              \
  "in q f32 1,2,4,3\nin k f32 1,2,3,4\nin v f32 1,2,4,3\ninit s f32 1 : 0.57\n"                    \
  "node MatMul m q k -> a\nnode Mul n a s -> b\nnode Softmax o b -> c : axis=-1\n"                 \
  "node MatMul p c v -> y\nout y\n"
#define NET_SEPARABLE                                                                              \
  "in x f32 1,4,5,5\nrand w 4,1,3,3\nrand p 6,4,1,1\nrand b 6\ninit lo f32 - : 0\n"                \
  "init hi f32 - : 6\nnode Conv d x w -> t : pads=1,1,1,1 group=4\nnode Clip k t lo hi -> u\n"     \
  "node Conv e u p b -> z\nnode Clip l z lo hi -> y\nout y\n"
#define NET_GELU                                                                                   \
  "in x f32 4,6\nrand w 6,5\nrand b 5\ninit r f32 1 : 1.4142135\ninit one f32 1 : 1\n"             \
  "init h f32 1 : 0.5\nnode MatMul m x w -> t\nnode Add a t b -> u\nnode Div d u r -> v\n"         \
  "node Erf e v -> ev\nnode Add p ev one -> q\nnode Mul k u q -> z\nnode Mul l z h -> y\n"         \
  "out y\n"
#endif
