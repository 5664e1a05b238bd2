"""Words for what may be wrong between two models that should be one: the causes that `compare` tries."""

from oneblock.words.entry import Entry

CAUSES: dict[str, Entry] = {
    "cause.activation": Entry(
        ("activation", "Features are bent by another function; GELU and its tanh approximation differ by up to 5e-4."),
        ("激活函数", "特征经过的是另一个函数；GELU 与其 tanh 近似最多相差 5e-4。"),
    ),
    "cause.base": Entry(
        ("rotary base", "Features turn at other speeds: another theta, or another stretching of it."),
        ("旋转基数", "特征的旋转速度不同：theta 不同，或拉伸方式不同。"),
    ),
    "cause.bias": Entry(
        ("bias", "A projection adds a learned vector in one model only."),
        ("偏置", "只有一个模型的投影加上了可学习的向量。"),
    ),
    "cause.buckets": Entry(
        ("distance buckets", "Distances are sorted into other buckets, so that they read other rows of the table."),
        ("距离分桶", "距离的分桶方式不同，因而读到表中不同的行。"),
    ),
    "cause.centred": Entry(
        ("centred weight", "A norm multiplies by 1 + w in one model and by w in the other."),
        ("以零为中心的权重", "一个模型的归一化乘以 1 + w，另一个乘以 w。"),
    ),
    "cause.embedding scale": Entry(
        ("embedding scale", "Token vectors are multiplied by the root of the width in one model only."),
        ("词嵌入缩放", "只有一个模型把词元向量乘以维度的平方根。"),
    ),
    "cause.epsilon": Entry(
        ("epsilon", "Norms divide by the root of the variance plus another small number."),
        ("ε", "归一化的分母里加上的小数不同。"),
    ),
    "cause.exchanged": Entry(
        ("exchanged projections", "Two of query, key and value hold each other's numbers."),
        ("投影对调", "查询、键、值中有两个的数值互换了。"),
    ),
    "cause.factor": Entry(
        ("factor", "A matrix is a multiple of what it should be: a scale that was folded into it, or forgotten."),
        ("倍数", "矩阵是应有值的若干倍：缩放被并入其中，或被遗漏。"),
    ),
    "cause.fraction": Entry(
        ("share turned", "Another share of each head's features is turned."),
        ("旋转比例", "每个头中参与旋转的特征比例不同。"),
    ),
    "cause.gate and up": Entry(
        ("gate and up swapped", "The gate's matrix lies in the place of the up projection, and the other way round."),
        ("门控与升维对调", "门控矩阵放在了升维投影的位置，反之亦然。"),
    ),
    "cause.layers": Entry(
        ("layers exchanged", "Two layers hold each other's numbers."),
        ("层对调", "两个层的数值互换了。"),
    ),
    "cause.mask": Entry(
        ("mask", "Queries may look at other keys: another rule, or a window of another width."),
        ("掩码", "查询能看到的键不同：规则不同，或窗口宽度不同。"),
    ),
    "cause.mask polarity": Entry(
        ("mask polarity", "True means may look in one model and must not look in the other."),
        ("掩码极性", "一个模型里 True 表示可以看，另一个模型里表示不可以看。"),
    ),
    "cause.norm": Entry(
        (
            "norm",
            "Epsilon is added to the deviation in one model, to the variance in the other; or the norm is another one.",
        ),
        ("归一化", "一个模型把 ε 加在标准差上，另一个加在方差上，或归一化的种类不同。"),
    ),
    "cause.position": Entry(
        ("position", "Positions enter the model in another way."),
        ("位置编码", "位置信息进入模型的方式不同。"),
    ),
    "cause.position offset": Entry(
        (
            "position offset",
            "Positions begin at another number, so that each token reads another row or turns by another angle.",
        ),
        ("位置偏移", "位置从另一个数开始，使每个词元读到另一行或转过另一个角度。"),
    ),
    "cause.residual": Entry(
        ("residual", "What a sublayer adds, or what it is added to, has another factor."),
        ("残差", "子层的增量或被加的残差流带有不同的系数。"),
    ),
    "cause.rotary layout": Entry(
        (
            "rotary layout",
            "Features are turned in other pairs, neighbours or halves; or rows of query and key stand in that order.",
        ),
        ("旋转布局", "旋转时特征的配对不同：相邻成对，或前后两半成对；或查询和键的行按另一种次序排列。"),
    ),
    "cause.router": Entry(
        ("router", "The weights of the chosen experts sum to 1 in one model and not in the other."),
        ("路由", "一个模型中所选专家的权重之和为 1，另一个不是。"),
    ),
    "cause.rows": Entry(
        ("rows shifted", "The rows of a table stand some places off, so that each id reads another one."),
        ("行偏移", "表中的行整体错位，每个编号读到了另一行。"),
    ),
    "cause.scale": Entry(
        ("scale", "Scores or logits are multiplied by another factor; for scores 1 / √head_dim is usual."),
        ("缩放", "分数或得分乘以的系数不同；注意力分数通常为 1 / √head_dim。"),
    ),
    "cause.sinusoid layout": Entry(
        ("layout of sinusoids", "Sines and cosines alternate in one model and stand in halves in the other."),
        ("正弦位置布局", "一个模型中正弦与余弦交替排列，另一个中分成前后两半。"),
    ),
    "cause.softcap": Entry(
        ("soft cap", "Scores or logits are bounded by a tanh in one model only, or at another value."),
        ("软上限", "只有一个模型用 tanh 限制分数，或上限不同。"),
    ),
    "cause.spec": Entry(
        ("spec", "The two specs differ there."),
        ("结构描述", "两个模型的结构描述在此不同。"),
    ),
    "cause.tied": Entry(
        ("tied matrix", "The head uses the token matrix in one model and a matrix of its own in the other."),
        ("共用矩阵", "一个模型的输出头使用词嵌入矩阵，另一个使用自己的矩阵。"),
    ),
    "cause.transposed": Entry(
        ("transposed weight", "A square matrix is stored the other way round, so that its shape does not tell."),
        ("权重转置", "方阵存成了转置，从形状看不出来。"),
    ),
    "cause.weights": Entry(
        ("other weights", "The numbers of this brick alone are others."),
        ("权重不同", "只有这个部件的数值不同。"),
    ),
    "cause.wiring": Entry(
        ("wiring", "Norms stand at another place."),
        ("接法", "归一化的位置不同。"),
    ),
}
"""kind -> entry: a cause's name, and a sentence on what it does."""
