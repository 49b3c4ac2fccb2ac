-- The nine attributes of UCI Adult that the paper uses.
-- table: adult

select count(*) from adult

select count(*) from adult where age > 40 and sex = 'Female'

select count(*) from adult where (age < 25 or age > 60) and salary = '>50K'

select count(*) from adult where education in ('Bachelors', 'Masters', 'Doctorate') and salary = '>50K'

select count(*) from adult where marital_status like 'Married%' and not occupation = 'Sales'

select count(*) from adult where (sex = 'Male') xor (salary = '>50K')

select count(*) from adult where race <> 'White' and native_country <> 'United-States' and age between 30 and 40

select sex, count(*), avg(age) from adult group by sex order by sex

select education, count(*) as n, avg(age) as mean, stddev(age) as spread
from adult group by education having count(*) > 500 order by n desc

select occupation, count(*) filter (where salary = '>50K') / count(*) as share
from adult group by occupation order by share desc limit 5

select floor(age / 10) * 10 as decade, sex, count(*) from adult group by all order by decade, sex

select width_bucket(age, 20, 80, 6) as bucket, count(*), median(age) from adult group by 1 order by 1

select median(age), quantile_cont(age, 0.9), quantile_disc(age, 0.1) from adult where salary = '>50K'

select race, corr(age, case when salary = '>50K' then 1 else 0 end) as r from adult group by race order by race

select salary, avg(age), var_pop(age), count(*) from adult where workclass like '%gov' group by salary order by 1

select workclass, education, count(*) as n from adult group by workclass, education order by n desc, 1, 2 limit 10

select count(*) from adult where age * 2 > 90 and upper(sex) = 'MALE' and length(native_country) < 6

select count(*) from adult where native_country in (select country from regions where continent = 'Asia')

select continent, count(*), avg(age) from adult join regions on native_country = country group by continent order by continent

select count(*), sum(age), avg(age) from adult where age > 200
