"""Chinese for why a question was not put to a module; {} is filled in."""

REASONS: dict[str, str] = {
    "the cache refuses to be cut: {}": "缓存拒绝截断：{}",
    "a convolution reaches over the border of a text; hide its input there": (
        "卷积越过了文本的边界；请在那里遮住它的输入"
    ),
    "a text of {} tokens would take too long here": "{} 个词元的文本在这里太费时",
    "an encoder may see the future; say --as decoder if it must not": (
        "编码器可以看到后文；若不允许，请用 --as decoder"
    ),
    "an encoder sees the future, so nothing of its past stays as it is": "编码器看得到后文，前面的内容不会保持不变",
    "could not be asked: {}": "无法提问：{}",
    "documents are given in another way: {}": "文档用别的方式给出：{}",
    "experts of limited capacity drop tokens by what else is in the batch": (
        "容量有限的专家按批次里的其他内容丢弃词元"
    ),
    "no adapter can be merged": "没有可合并的适配器",
    "no attention over the text was seen": "没有看到对文本的注意力",
    "no attention within the text was seen": "没有看到文本内部的注意力",
    "no configuration says an activation that is known here": "没有配置写明这里认识的激活函数",
    "no configuration says an epsilon": "没有配置写明 ε",
    "no configuration says that table and head are tied": "没有配置写明词表与输出头共享",
    "no configuration says whether the weights are renormalised": "没有配置写明权重是否重新归一化",
    "no configuration says which id ends a text": "没有配置写明哪个编号结束文本",
    "no dropout above 0 is configured": "没有设置大于 0 的随机失活",
    "no gradient leads from an answer to its tokens": "没有从输出到词元的梯度",
    "no layer adds a low-rank product to another": "没有哪一层加上低秩乘积",
    "no list of blocks that attend was found": "没有找到带注意力的块列表",
    "no norm was found in its forward": "前向计算中没有找到归一化",
    "no router that chooses among experts was found": "没有找到在专家中选择的路由",
    "no sines and cosines are added to the tokens": "没有给词元加上正弦与余弦",
    "no softmax over products of queries and keys was seen": "没有看到对查询与键的乘积做 softmax",
    "no table of positions bounds the length of a text": "没有限制文本长度的位置表",
    "no two heads share keys": "没有两个头共用键",
    "no weight of the module learns": "模块没有可学习的权重",
    "nobody is hidden: an encoder without a padding mask": "没有人被遮住：没有填充掩码的编码器",
    "nobody says how the cache's rows are put into another order": "没有说明缓存的各行怎样重排",
    "norms over the batch differ between the modes: see OB702": "批次上的归一化在两种模式下不同：见 OB702",
    "nothing is drawn in train mode": "训练模式下没有抽取随机数",
    "one label is held against several places": "一个标签对着多个位置",
    "only decoders are padded on the left": "只有解码器在左侧填充",
    "padding on the right is later than every real token": "右侧的填充在所有真实词元之后",
    "positions that begin again do not separate documents in this module": "重新开始的位置在这个模块里不分隔文档",
    "queries and keys are not turned by their positions": "查询与键没有按位置旋转",
    "texts beyond the window of {} tokens are too long to ask": "超出 {} 个词元窗口的文本太长，无法提问",
    "texts of one batch change each other: see OB102": "同一批次的文本互相影响：见 OB102",
    "the Adapter says not how to call without a decoder input": "适配器没有说明不给解码器输入时怎么调用",
    "the adapters look trained; give reference=, which makes a fresh module": (
        "适配器看来训练过；请给 reference=，用来造新模块"
    ),
    "the answer depends on what is drawn: see OB401": "输出取决于抽取的随机数：见 OB401",
    "the answer has no gradient": "输出没有梯度",
    "the cache ({}) cannot be cut": "缓存（{}）不能截断",
    "the configuration wants values to be turned": "配置要求旋转值",
    "the future leaks by value already (OB101)": "后文已经经由数值泄漏（OB101）",
    "the longest text has {} tokens": "最长的文本有 {} 个词元",
    "the longest text has {} tokens, too few for positions to collapse": "最长的文本有 {} 个词元，不足以使位置混同",
    "the loss ignores no label, and the module takes no padding mask": "损失不忽略任何标签，模块也不接受填充掩码",
    "the loss ignores no label: neither -100 nor the pad id nor -1": (
        "损失不忽略任何标签：-100、填充编号、-1 都不忽略"
    ),
    "the loss is not made of the logits that are returned": "损失不是由返回的 logits 算出的",
    "the module answers with a vector per token": "模块为每个词元回答一个向量",
    "the module answers with another length than its labels have": "模块回答的长度与标签不同",
    "the module answers with no logits over its vocabulary": "模块没有回答词表上的 logits",
    "the module answers with no loss for the balance of experts": "模块没有给出专家均衡的损失",
    "the module answers with no vector per token": "模块没有为每个词元回答一个向量",
    "the module answers with no vector per token; see the check of pooling": (
        "模块没有为每个词元回答一个向量；见池化的检查"
    ),
    "the module declares no window": "模块没有声明窗口",
    "the module does not run in 16 bits ({})": "模块不能用 16 位运行（{}）",
    "the module does not run in bfloat16 on this machine": "模块在这台机器上不能用 bfloat16 运行",
    "the module gives no cache back": "模块不返回缓存",
    "the module gives no loss": "模块不给出损失",
    "the module has no head as large as a table of ids": "模块没有与词表一样大的输出头",
    "the module holds no nn.MultiheadAttention": "模块里没有 nn.MultiheadAttention",
    "the module knows too few ids to tell labels apart": "模块认识的编号太少，分不清标签",
    "the module reads no source": "模块不读源文本",
    "the module takes neither documents nor positions": "模块既不接受文档也不接受位置",
    "the module takes no padding mask": "模块不接受填充掩码",
    "the module takes no {}": "模块不接受 {}",
    "the module takes vectors: whoever makes them adds the positions": "模块接受向量：位置由制造向量的一方加入",
    "the module wants its decoder input from the caller": "模块要求调用者给出解码器输入",
    "the source is ignored already (OB105)": "源文本已经被忽略（OB105）",
    "the time given was over": "给定的时间已用完",
    "the weights look trained; give reference=, which makes a fresh module": (
        "权重看来训练过；请给 reference=，用来造新模块"
    ),
    "the window of {} tokens is too short to cut a text in parts": "{} 个词元的窗口太短，不能把文本分段",
    "token by token the cache is wrong already (OB501)": "逐个词元时缓存已经出错（OB501）",
    "too little time to load torch.compile": "时间不够加载 torch.compile",
    "torch.compile fails: {}": "torch.compile 失败：{}",
    "vectors of a source may know their places already": "源文本的向量可能已经带有位置",
    "what is drawn in train mode cannot be switched off": "训练模式下抽取的随机数关不掉",
    "what scores are multiplied with is learned, or queries and keys are normalised": (
        "分数所乘的量是学出来的，或查询与键已归一化"
    ),
    "what stands at hidden places matters already": "被遮住的内容已经有影响",
    "with a cache the mask over past and new tokens fails: {}": "使用缓存时，覆盖旧新词元的掩码失败：{}",
    "with a cache the module answers with no vector per new token": "使用缓存时，模块没有为每个新词元回答一个向量",
    "within its window the cache is wrong already (OB501)": "在窗口之内缓存已经出错（OB501）",
    "{} operations would take seconds to compile": "{} 个运算需要数秒编译",
}
"""English -> Chinese."""
