"""Words for what a model costs: the columns of a price, and what each operation does. Formulas stand at each term."""

from oneblock.words.entry import Entry

COLUMNS: dict[str, Entry] = {
    "column.forward": Entry(
        ("forward", "FLOPs of a forward pass: matrix products only, a multiply-add is two, hidden scores count too."),
        ("前向", "一次前向的浮点运算数：只计矩阵乘法，一次乘加算两次，被掩盖的分数也计入。"),
    ),
    "column.backward": Entry(
        ("backward", "FLOPs of a backward pass: of each product two more, and what is computed again."),
        ("反向", "一次反向的浮点运算数：每个乘法再做两个，另加重新计算的部分。"),
    ),
    "column.moved": Entry(
        (
            "bytes moved",
            "Bytes read and written where one operation runs after the other; backward moves twice as much.",
        ),
        ("搬运字节", "各运算依次执行时读写的字节数；反向再搬运两倍。"),
    ),
    "column.weights": Entry(
        ("weights", "Bytes of the parameters."),
        ("权重", "参数占用的字节数。"),
    ),
    "column.activations": Entry(
        ("activations", "Bytes that a forward pass keeps because backward needs them again."),
        ("激活", "前向为反向保留的字节数。"),
    ),
    "column.gradients": Entry(
        ("gradients", "Bytes of one gradient per parameter."),
        ("梯度", "每个参数一个梯度所占的字节数。"),
    ),
    "column.optimiser": Entry(
        ("optimiser", "Bytes of the two moments that AdamW keeps per parameter, in float32."),
        ("优化器", "AdamW 为每个参数保存的两个动量，用 float32。"),
    ),
    "column.cache": Entry(
        ("cache", "Bytes of keys and values that are remembered of past tokens and of a source."),
        ("缓存", "为已有词元和源文本记住的键和值所占的字节数。"),
    ),
}

OPERATIONS: dict[str, Entry] = {
    "cost.q": Entry(
        ("queries", "Every token times the matrix of queries."),
        ("查询", "每个词元乘以查询矩阵。"),
    ),
    "cost.k": Entry(("keys", "Every token times the matrix of keys."), ("键", "每个词元乘以键矩阵。")),
    "cost.v": Entry(("values", "Every token times the matrix of values."), ("值", "每个词元乘以值矩阵。")),
    "cost.out": Entry(
        ("output projection", "The heads side by side times the output matrix."),
        ("输出投影", "拼在一起的各头乘以输出矩阵。"),
    ),
    "cost.scores": Entry(
        ("scores", "Every query with every key, hidden ones too: grows with the square of the length."),
        ("注意力分数", "每个查询与每个键相乘，被掩盖的也算：随长度的平方增长。"),
    ),
    "cost.mix": Entry(
        ("weighted values", "Attention weights times values, the second product that grows with the square."),
        ("加权的值", "注意力权重乘以值，第二个随长度平方增长的乘法。"),
    ),
    "cost.attend": Entry(
        ("fused attention", "Queries, keys and values are read once, and no score is ever written."),
        ("融合注意力", "查询、键、值各读一次，注意力分数从不写出。"),
    ),
    "cost.softmax": Entry(
        ("softmax", "Scores written out: scaled, hidden, turned into weights, each step over all of them."),
        ("softmax", "分数全部写出：缩放、掩盖、化为权重，每一步都过一遍。"),
    ),
    "cost.rotate": Entry(
        ("rotation", "Queries and keys are turned by their positions, in several steps over all features."),
        ("旋转", "查询和键按位置旋转，分几步扫过所有特征。"),
    ),
    "cost.norm": Entry(
        ("norm", "Every vector is read for its size, then scaled."),
        ("归一化", "读出每个向量的尺度，再缩放。"),
    ),
    "cost.up": Entry(("up projection", "Every token is widened."), ("升维投影", "每个词元被展宽。")),
    "cost.gate": Entry(
        ("gate", "A second widening, whose result gates the first."), ("门", "再展宽一次，结果作为第一次的门。")
    ),
    "cost.down": Entry(
        ("down projection", "Every token is brought back to its width."), ("降维投影", "每个词元收回原宽度。")
    ),
    "cost.activation": Entry(
        ("activation", "Every hidden feature is bent, and multiplied where there is a gate."),
        ("激活函数", "每个隐藏特征经过激活，有门时再相乘。"),
    ),
    "cost.router": Entry(
        ("router", "Every token is compared with every expert."), ("路由", "每个词元与每个专家比较。")
    ),
    "cost.gather": Entry(
        ("gathering", "Tokens are copied to the experts they chose."),
        ("分发", "词元被复制给各自选中的专家。"),
    ),
    "cost.scatter": Entry(
        ("collecting", "What the experts answer is weighed and added up, token by token."),
        ("汇集", "专家的输出按词元加权相加。"),
    ),
    "cost.dropout": Entry(
        ("dropout", "A mask is drawn and multiplied."),
        ("随机失活", "抽取掩码并相乘。"),
    ),
    "cost.residual": Entry(
        ("residual", "What a sublayer gives is added to the stream."),
        ("残差", "把子层的输出加到残差流上。"),
    ),
    "cost.lookup": Entry(
        ("lookup", "A row per token is read from the table, and positions are added."),
        ("查表", "为每个词元从表中读一行，再加上位置。"),
    ),
    "cost.waves": Entry(
        ("waves", "Sine and cosine of each position are computed, in float64."),
        ("正弦波", "以 float64 算出每个位置的正弦和余弦。"),
    ),
    "cost.bias": Entry(
        ("score bias", "A number per head for every query and key is looked up."),
        ("分数偏置", "为每个头的每对查询和键查出一个数。"),
    ),
    "cost.dense": Entry(
        ("dense layer", "A square matrix before the head's projection."),
        ("线性层", "输出投影之前的方阵。"),
    ),
    "cost.logits": Entry(
        ("logits", "Every token is compared with the whole vocabulary."),
        ("得分", "每个词元与整个词表比较。"),
    ),
    "cost.cap": Entry(("soft cap", "Logits are bent below a bound."), ("软上限", "得分被压到界限以内。")),
    "cost.loss": Entry(
        ("loss", "The softmax of all logits, in float32."),
        ("损失", "所有得分的 softmax，用 float32。"),
    ),
    "cost.pool": Entry(
        ("pooling", "One vector per text is taken from the stream."), ("汇聚", "从残差流中为每个文本取一个向量。")
    ),
    "cost.labels": Entry(
        ("label scores", "One vector per text times a matrix of labels."), ("标签得分", "每个文本的向量乘以标签矩阵。")
    ),
    "cost.weights": Entry(("weights", "The parameters themselves."), ("权重", "参数本身。")),
    "cost.gradients": Entry(("gradients", "One number for each parameter."), ("梯度", "每个参数一个数。")),
    "cost.moments": Entry(
        ("moments", "The running mean of each gradient and of its square."),
        ("动量", "每个梯度及其平方的滑动平均。"),
    ),
    "cost.step": Entry(
        ("optimiser's step", "Weight, gradient and moments are read, weight and moments written."),
        ("优化器一步", "读权重、梯度和动量，写权重和动量。"),
    ),
    "cost.cache": Entry(
        ("keys and values", "What attention remembers of each token."),
        ("键和值", "注意力为每个词元记住的内容。"),
    ),
}
